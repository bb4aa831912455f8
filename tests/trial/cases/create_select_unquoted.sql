# expect: equal
SET sql_quote_show_create=0;
CREATE TABLE t AS SELECT 1 AS a;
