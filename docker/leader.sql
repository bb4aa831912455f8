-- The account cdc-producer uses on the leader.
SET sql_log_bin = 0;
CREATE USER 'fluvio'@'%' IDENTIFIED BY 'fluvio4cdc!';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'fluvio'@'%';
-- for the audit, which reads schemas and rows
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON `flvDb`.* TO 'fluvio'@'%';
GRANT SHOW_ROUTINE ON *.* TO 'fluvio'@'%';
-- the same account is who types the tutorial's statements; a producer of yours does not need this
GRANT ALL ON `flvDb`.* TO 'fluvio'@'%';
-- cdc-copy with method = "clone"
GRANT BACKUP_ADMIN ON *.* TO 'fluvio'@'%';
-- the audit of a profile with exclude_dbs
GRANT SHOW DATABASES ON *.* TO 'fluvio'@'%';
