# expect: equal
CREATE DATABASE `𠜱db`;
CREATE TABLE `𠜱db`.`t🎉` (`c🎉` INT);
INSERT INTO `?db`.`t?` VALUES (1);
