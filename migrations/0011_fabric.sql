-- Connections: which event starts which steps, as whom. A row of kind 'rule' is the same among the rules of
-- automation; one of kind 'schedule' has no event (its columns come with 0014).
-- steps: operations in their order. secret: their parameters, sealed; they may hold secrets.
-- after_seq: the organization's newest event when it was enabled; events up to it do not start it.
-- revision: counts edits. author_id: who last edited its steps, and whose rights they have.
CREATE TABLE connection (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    source_event TEXT NOT NULL,
    conditions JSONB NOT NULL,
    steps JSONB NOT NULL,
    secret BYTEA NOT NULL,
    cooldown_secs BIGINT NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    author_id UUID NOT NULL REFERENCES app_user (id),
    revision BIGINT NOT NULL,
    after_seq BIGINT NOT NULL,
    last_fired_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
-- What an event starts is found by the few patterns that cover its type, however many Connections there are.
CREATE INDEX connection_match ON connection (org_id, source_event) WHERE state = 'enabled' AND deleted_at IS NULL;
CREATE INDEX connection_org ON connection (org_id, kind, created_at, id) WHERE deleted_at IS NULL;

-- One firing. chain: the Connections that led to it, itself included; none fires twice in one.
-- payload: what references to the trigger find. secret: the parameters of the steps so far, sealed.
-- A run has an owner while it runs; it is never run a second time.
CREATE TABLE connection_run (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    kind TEXT NOT NULL,
    connection_id UUID REFERENCES connection (id),
    event_id UUID,
    event_type TEXT,
    event_seq BIGINT NOT NULL,
    due_at TIMESTAMPTZ,
    author_id UUID NOT NULL REFERENCES app_user (id),
    chain JSONB NOT NULL,
    payload JSONB NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    owner UUID,
    steps JSONB NOT NULL,
    secret BYTEA,
    run_key TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX connection_run_event ON connection_run (connection_id, event_id);
CREATE UNIQUE INDEX connection_run_due ON connection_run (connection_id, due_at);
CREATE UNIQUE INDEX connection_run_key ON connection_run (run_key);
CREATE INDEX connection_run_queued ON connection_run (created_at, id) WHERE state = 'queued';
CREATE INDEX connection_run_running ON connection_run (owner) WHERE state = 'running';
CREATE INDEX connection_run_list ON connection_run (connection_id, created_at, event_seq, id);
CREATE INDEX connection_run_org ON connection_run (org_id, kind, created_at, event_seq, id);
CREATE INDEX connection_run_skipped ON connection_run (connection_id, id) WHERE state = 'skipped';
CREATE INDEX connection_run_ended ON connection_run (ended_at);

-- The run that staged a change, and the step of it: the same step stages once.
ALTER TABLE change ADD COLUMN run_id UUID;
ALTER TABLE change ADD COLUMN run_key TEXT;
CREATE UNIQUE INDEX change_run_key ON change (run_key);
