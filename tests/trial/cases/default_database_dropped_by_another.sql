# expect: equal
CREATE DATABASE gone;
CREATE DATABASE other;
USE gone;
--connect (b,localhost,root,,)
DROP DATABASE gone;
--connection default
CREATE TABLE other.t (a INT);
