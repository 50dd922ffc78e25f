-- A run that waits for a time or for an event has no owner. resume_at: when it goes on; kept afterwards, as since when
-- it is due. wait_event: a pattern of events that it goes on by, those after the number in wait. wait: what it waits
-- for, and then what came.
ALTER TABLE connection_run ADD COLUMN resume_at TIMESTAMPTZ;
ALTER TABLE connection_run ADD COLUMN wait_event TEXT;
ALTER TABLE connection_run ADD COLUMN wait JSONB;
-- The run that this one repeats.
ALTER TABLE connection_run ADD COLUMN rerun_of UUID;

CREATE INDEX connection_run_resume ON connection_run (resume_at, id) WHERE state = 'waiting';
CREATE INDEX connection_run_awaits ON connection_run (org_id, wait_event) WHERE state = 'waiting';
-- All runs of an organization, and those that ended so.
CREATE INDEX connection_run_all ON connection_run (org_id, created_at, event_seq, id);
CREATE INDEX connection_run_state ON connection_run (org_id, state, created_at, event_seq, id);

-- The enabled Connections of an author who may have lost a right.
CREATE INDEX connection_author ON connection (author_id) WHERE state = 'enabled' AND deleted_at IS NULL;
CREATE INDEX app_user_updated ON app_user (updated_at);
CREATE INDEX site_grant_created ON site_grant (created_at);
