# expect: stopped: binlog_format
# red
SET binlog_format = STATEMENT;
CREATE TABLE t AS SELECT 1 AS a;
