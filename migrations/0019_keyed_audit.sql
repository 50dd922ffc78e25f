-- From here on the hash of an audit entry is keyed. Entries that are there stay as they were written.
ALTER TABLE audit ADD COLUMN hash_version BIGINT NOT NULL DEFAULT 1;

-- The first entry with a keyed hash, and a code over the head that only the service can compute.
ALTER TABLE audit_head ADD COLUMN keyed_from_seq BIGINT;
ALTER TABLE audit_head ADD COLUMN code TEXT;

-- Secrets that the service made for itself, sealed with its encryption key.
CREATE TABLE service_secret (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX service_secret_name ON service_secret (name);
