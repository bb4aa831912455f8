# expect: stopped: binlog_format
SET binlog_format = STATEMENT;
CREATE TABLE t AS SELECT 1 AS a;
