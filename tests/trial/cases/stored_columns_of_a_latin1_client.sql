# expect: stopped: is a CREATE VIEW from a client
SET NAMES latin1;
CREATE VIEW v (`é`) AS SELECT 1;
