# expect: equal
CREATE TABLE t (extra INT DEFAULT 3) SELECT 1 AS a;
