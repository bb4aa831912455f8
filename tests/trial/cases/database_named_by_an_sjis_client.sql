# expect: stopped: cannot be known in the client's character set
SET NAMES sjis;
CREATE DATABASE `“ú–{`;
CREATE TABLE `“ú–{`.t (a INT);
