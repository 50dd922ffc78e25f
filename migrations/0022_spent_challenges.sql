-- Proofs of a first factor that have opened a session. Each opens one, in whichever process it is presented.
CREATE TABLE spent_challenge (
    id UUID PRIMARY KEY,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX spent_challenge_expiry ON spent_challenge (expires_at, id);
