# expect: equal
CREATE TABLE t (s SET('å','ä') CHARACTER SET swe7);
INSERT INTO t VALUES (3);
