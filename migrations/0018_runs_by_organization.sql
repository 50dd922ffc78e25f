-- Runs that wait are found by their organization, however many another one has waiting.
DROP INDEX connection_run_queued;
CREATE INDEX connection_run_queued ON connection_run (org_id, created_at, id) WHERE state = 'queued';
