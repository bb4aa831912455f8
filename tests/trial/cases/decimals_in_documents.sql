# expect: equal
CREATE TABLE t (j JSON);
INSERT INTO t VALUES (JSON_OBJECT('price', 9.99)), (JSON_ARRAY(CAST(5 AS UNSIGNED), 5, -1.50, 1e3));
UPDATE t SET j = JSON_SET(j, '$.price', 10.0);
