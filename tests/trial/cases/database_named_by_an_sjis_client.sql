# expect: equal
# red
SET NAMES sjis;
CREATE DATABASE `“ú–{`;
CREATE TABLE `“ú–{`.t (a INT);
