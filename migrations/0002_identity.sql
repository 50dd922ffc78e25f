-- A long-lived credential of a user. prefix is its public half, by which it is
-- looked up; secret_hash is keyed. scopes is an array of words; empty: unscoped.
CREATE TABLE api_key (
    id UUID PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES app_user (id),
    prefix TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    scopes JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX api_key_prefix ON api_key (prefix);
CREATE INDEX api_key_user ON api_key (user_id, created_at, id);

-- What a request with an Idempotency-Key created and was answered, written with
-- the creation itself. response is sealed: it may hold a secret that is shown once.
CREATE TABLE idempotency (
    user_id UUID NOT NULL REFERENCES app_user (id),
    idempotency_key TEXT NOT NULL,
    route TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    location TEXT NOT NULL,
    response BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, idempotency_key)
);
CREATE INDEX idempotency_time ON idempotency (created_at);
