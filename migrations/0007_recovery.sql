-- Links by which users set a new password. token_hash is keyed. bound_to is a keyed
-- digest of the email and the password's hash as they were: of others the link is void.
CREATE TABLE password_reset (
    token_hash TEXT PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES app_user (id),
    bound_to TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX password_reset_user ON password_reset (user_id);
CREATE INDEX password_reset_expiry ON password_reset (expires_at);
