# expect: as native
CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NOT NULL);
INSERT INTO t VALUES (1, '2020-01-01');
SET explicit_defaults_for_timestamp = 0;
ALTER TABLE t AUTO_INCREMENT = 1000;
UPDATE t SET id = 2;
