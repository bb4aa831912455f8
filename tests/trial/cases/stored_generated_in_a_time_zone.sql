# expect: equal
SET time_zone='+05:30';
CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, h VARCHAR(30) AS (DATE_FORMAT(ts,'%Y-%m-%d %H')) STORED, KEY (h));
INSERT INTO t (id, ts) VALUES (1,'2020-01-01 03:00:00');
UPDATE t SET ts = '2020-01-02 04:00:00';
