# expect: equal
CREATE TABLE t (id INT PRIMARY KEY, j JSON, KEY ((CAST(j->'$.a' AS UNSIGNED ARRAY))));
INSERT INTO t VALUES (1, '{"a": [1, 2]}');
DELETE FROM t;
