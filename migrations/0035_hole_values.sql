-- Values that answers of the device gave for later calls of the plan, such as the id of a new object: kept before the next
-- call leaves, so that the way back can name it after a restart.
ALTER TABLE change ADD COLUMN hole_values JSONB;
