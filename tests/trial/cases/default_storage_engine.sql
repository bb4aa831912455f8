# expect: as native
SET default_storage_engine = MEMORY;
CREATE TABLE t (a INT);
