-- Processes that serve this database. Who lives is told by a lock, not by these rows.
CREATE TABLE process (
    id UUID PRIMARY KEY,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    version TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ
);
CREATE INDEX process_seen ON process (seen_at);

-- Work that one process does for all of them, and when it was last begun.
CREATE TABLE duty (
    name TEXT PRIMARY KEY,
    owner UUID NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL
);

-- The process that brings an apply forward; NULL while there is none.
ALTER TABLE change ADD COLUMN apply_owner UUID;

-- The process that reads the controller right now.
ALTER TABLE controller ADD COLUMN sync_owner UUID;
CREATE INDEX controller_sync_owner ON controller (sync_owner) WHERE sync_owner IS NOT NULL;

-- Every process follows the sequences by itself: none consumes an event.
DROP INDEX event_unpublished;
ALTER TABLE event DROP COLUMN published_at;
CREATE INDEX event_time ON event (org_id, occurred_at, seq);
CREATE INDEX event_all ON event (occurred_at, seq, id);
CREATE INDEX audit_all ON audit (occurred_at, seq, id);

CREATE INDEX user_session_expiry ON user_session (expires_at);
CREATE INDEX spent_refresh_session ON spent_refresh (session_id);
