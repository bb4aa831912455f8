# expect: equal
SET collation_connection=utf32_unicode_ci;
CREATE TABLE t (a INT);
SET collation_connection=utf16_general_ci;
ALTER TABLE t ADD b VARCHAR(3) DEFAULT 'x';
