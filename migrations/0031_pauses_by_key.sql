-- What sets apart the firings whose pauses are their own, such as '{{trigger.device_id}}'; of a run: the value it had.
ALTER TABLE connection ADD COLUMN cooldown_key TEXT;
ALTER TABLE connection_run ADD COLUMN cooldown_key TEXT;
CREATE INDEX connection_run_cooldown ON connection_run (connection_id, cooldown_key, created_at)
    WHERE cooldown_key IS NOT NULL;
