ALTER TABLE app_user ADD COLUMN mfa_enabled BOOLEAN NOT NULL DEFAULT FALSE;

-- A user's generator of one-time codes; id is the user's. secret is sealed by the
-- server. Until confirmed_at it is only staged. last_step: the time step of the
-- newest code that was accepted; none of it or before is accepted again.
CREATE TABLE second_factor (
    id UUID PRIMARY KEY REFERENCES app_user (id),
    secret BYTEA NOT NULL,
    last_step BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    confirmed_at TIMESTAMPTZ
);

-- Codes for who has lost the generator: hashes, each good for one login.
CREATE TABLE backup_code (
    user_id UUID NOT NULL REFERENCES app_user (id),
    code_hash TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    used_at TIMESTAMPTZ,
    PRIMARY KEY (user_id, code_hash)
);

-- Failed logins by names that nobody has, so that they lock like those of users:
-- the name itself is not kept, only its keyed hash.
CREATE TABLE unknown_login (
    name_hash TEXT PRIMARY KEY,
    failed_logins BIGINT NOT NULL,
    locked_until TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX unknown_login_time ON unknown_login (updated_at, name_hash);
