# expect: equal
CREATE TABLE e (a ENUM('x','y','z'), b INT, v INT AS (b) STORED, PRIMARY KEY (a, b));
INSERT INTO e (a, b) VALUES (1, 1), (2, 2), (3, 3);
DELETE FROM e WHERE b < 3;
CREATE TABLE s (b INT, a SET('x','y','z'), v INT AS (b) VIRTUAL, PRIMARY KEY (b, a));
INSERT INTO s (a, b) VALUES (3, 1), (2, 2), (7, 3);
DELETE FROM s WHERE b < 3;
CREATE TABLE o (a ENUM('x','y','z') PRIMARY KEY, v INT AS (a + 0) STORED);
INSERT INTO o (a) VALUES (1), (2), (3);
DELETE FROM o WHERE a < 3;
