# expect: stopped: XA transaction
CREATE TABLE t (a INT);
XA START 'x';
INSERT INTO t VALUES (1);
XA END 'x';
XA PREPARE 'x';
XA COMMIT 'x';
