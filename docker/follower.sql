-- The account cdc-consumer uses on the follower.
SET sql_log_bin = 0;
CREATE USER 'fluvio'@'%' IDENTIFIED BY 'fluvio4cdc!';
-- what the leader's rows and statements may do
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, TRIGGER, EVENT,
  CREATE ROUTINE, ALTER ROUTINE, EXECUTE, LOCK TABLES, CREATE TEMPORARY TABLES ON *.* TO 'fluvio'@'%';
-- in the session it had there, under the leader's GTID, or told apart by InnoDB's own numbers where there are no GTIDs
GRANT SESSION_VARIABLES_ADMIN, REPLICATION_APPLIER, PROCESS ON *.* TO 'fluvio'@'%';
-- views, triggers, routines and events keep their definers
GRANT /*!80200 SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER, */ SYSTEM_USER ON *.* TO 'fluvio'@'%';
-- transactions keep the tags of their GTIDs
/*!80300 GRANT TRANSACTION_GTID_TAG ON *.* TO 'fluvio'@'%' */;
-- cdc-copy tells the follower which transactions the rows hold
GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO 'fluvio'@'%';
-- cdc-copy with method = "clone"
GRANT CLONE_ADMIN ON *.* TO 'fluvio'@'%';
-- the audit of a profile with exclude_dbs
GRANT SHOW DATABASES ON *.* TO 'fluvio'@'%';
