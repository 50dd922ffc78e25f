-- Schedules are Connections that the clock starts. cron has five fields, read in the time zone (an IANA name).
-- missed: what is done about times that nobody was there for. next_due_at: null unless it is enabled.
ALTER TABLE connection ADD COLUMN cron TEXT;
ALTER TABLE connection ADD COLUMN time_zone TEXT;
ALTER TABLE connection ADD COLUMN missed TEXT;
ALTER TABLE connection ADD COLUMN next_due_at TIMESTAMPTZ;
CREATE INDEX connection_due ON connection (next_due_at) WHERE next_due_at IS NOT NULL;
