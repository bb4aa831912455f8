# expect: as native
SET show_create_table_verbosity=1;
CREATE TABLE t AS SELECT 1 AS a;
