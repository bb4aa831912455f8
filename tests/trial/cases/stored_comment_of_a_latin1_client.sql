# expect: stopped: is a CREATE PROCEDURE from a client
SET NAMES latin1;
CREATE PROCEDURE p() COMMENT 'café' SELECT 1;
