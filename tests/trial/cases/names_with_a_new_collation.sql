# expect: equal
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
CREATE TABLE t (a INT);
SET NAMES utf8mb4 COLLATE utf8mb4_ja_0900_as_cs;
CREATE VIEW v AS SELECT 'a' AS a;
