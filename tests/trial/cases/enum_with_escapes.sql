# expect: equal
CREATE TABLE e (e ENUM('a\\b','c'));
INSERT INTO e VALUES ('c'), ('a\\b');
CREATE TABLE s (s SET('line\nline','c'));
INSERT INTO s VALUES (3);
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
CREATE TABLE n (e ENUM('a\b','c'));
INSERT INTO n VALUES (1);
