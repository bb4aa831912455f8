# expect: equal
# red
ALTER DATABASE CHARACTER SET latin1;
CREATE TABLE t (a VARCHAR(5));
