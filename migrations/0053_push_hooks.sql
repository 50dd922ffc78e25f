-- Requests in which a controller tells the service that something changed. push_secret: proves them; sealed, empty where none was
-- made.
ALTER TABLE controller ADD COLUMN push_secret BYTEA;
-- When the last request with a good proof came, by the hook that it was for.
CREATE TABLE push_heard (
    controller_id UUID NOT NULL REFERENCES controller (id),
    channel TEXT NOT NULL,
    heard_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (controller_id, channel)
);
