# expect: equal
CREATE TABLE t (a INT);
CREATE TABLE m (a INT) ENGINE=InnoDB UNION=(t);
