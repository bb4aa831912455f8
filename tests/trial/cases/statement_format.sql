# expect: stopped: binlog_format
CREATE TABLE t (a INT);
SET binlog_format = STATEMENT;
INSERT INTO t VALUES (1);
