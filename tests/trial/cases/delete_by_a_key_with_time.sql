# expect: equal
CREATE TABLE s (day INT, start TIME, PRIMARY KEY (day, start));
INSERT INTO s VALUES (1,'09:00:00'),(1,'10:00:00'),(2,'09:00:00');
DELETE FROM s WHERE day=1 AND start='10:00:00';
CREATE TABLE f (day INT, start TIME(3), PRIMARY KEY (start, day));
INSERT INTO f VALUES (1,'-09:00:00.5'),(1,'10:00:00');
DELETE FROM f WHERE start < 0;
