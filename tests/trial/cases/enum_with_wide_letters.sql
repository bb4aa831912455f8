# expect: equal
CREATE TABLE e (e ENUM('🎉','x'));
INSERT INTO e VALUES (1), (2);
