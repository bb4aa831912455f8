# expect: equal
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), c VARCHAR(3) AS (a) STORED);
INSERT IGNORE INTO t (id, a) VALUES (1,'toolong');
SET sql_mode = '';
CREATE TABLE n (a INT, b TINYINT AS (a) STORED);
INSERT INTO n (a) VALUES (1000);
