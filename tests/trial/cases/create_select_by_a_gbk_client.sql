# expect: equal
SET NAMES gbk;
CREATE TABLE t AS SELECT 1 AS `ùh`, 2 AS b;
ALTER TABLE t ADD c INT;
