-- The service's own log lines, in a database of their own. Nothing else refers to them.

CREATE TABLE log_line (
    id UUID PRIMARY KEY NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('info', 'warn', 'error')),
    target TEXT NOT NULL,
    message TEXT NOT NULL,
    fields JSONB NOT NULL,
    request_id TEXT,
    span TEXT
);
CREATE INDEX log_line_time ON log_line (at, id);
CREATE INDEX log_line_request ON log_line (request_id, at, id) WHERE request_id IS NOT NULL;
-- What went wrong is looked for more often than what went well, and is rare among it.
CREATE INDEX log_line_trouble ON log_line (at, id) WHERE level <> 'info';
