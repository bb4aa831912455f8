# expect: stopped: binlog_row_image
CREATE TABLE t (id INT PRIMARY KEY, a INT);
SET binlog_row_image = MINIMAL;
INSERT INTO t (id) VALUES (1);
