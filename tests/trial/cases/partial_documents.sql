# expect: stopped: PARTIAL_JSON
CREATE TABLE t (id INT PRIMARY KEY, j JSON);
INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('a', 500), 'b', 1));
SET binlog_row_value_options = PARTIAL_JSON;
UPDATE t SET j = JSON_SET(j, '$.b', 2);
