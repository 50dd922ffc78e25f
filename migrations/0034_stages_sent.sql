-- How far the calls of each stage of a plan were sent: recorded before each call leaves, so that a restart repeats none.
ALTER TABLE change ADD COLUMN sent JSONB;
