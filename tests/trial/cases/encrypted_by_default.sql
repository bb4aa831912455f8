# expect: equal
SET default_table_encryption = 1;
CREATE DATABASE d;
CREATE SCHEMA IF NOT EXISTS e CHARACTER SET latin1;
CREATE DATABASE f ENCRYPTION = 'N';
SET sql_mode = 'ANSI_QUOTES';
CREATE DATABASE "j`" # ENCRYPTION
;
SET default_table_encryption = 0;
CREATE DATABASE h;
CREATE TABLE h.t (a INT);
