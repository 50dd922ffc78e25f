-- An app that users let act for them. secret_hash is keyed; NULL where the app
-- cannot keep a secret. redirect_uris and scopes are arrays of texts.
CREATE TABLE oauth2_app (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    owner_id UUID NOT NULL REFERENCES app_user (id),
    name TEXT NOT NULL,
    description TEXT,
    client_type TEXT NOT NULL,
    secret_hash TEXT,
    secret_rotated_at TIMESTAMPTZ,
    redirect_uris JSONB NOT NULL,
    scopes JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX oauth2_app_org ON oauth2_app (org_id, created_at, id);
CREATE INDEX oauth2_app_owner ON oauth2_app (owner_id, created_at, id);

-- What a user allowed an app. It begins with a code that is good once; all
-- tokens that follow from it end with it. token_version is the user's of that time.
CREATE TABLE oauth2_grant (
    id UUID PRIMARY KEY,
    app_id UUID NOT NULL REFERENCES oauth2_app (id),
    user_id UUID NOT NULL REFERENCES app_user (id),
    scopes JSONB NOT NULL,
    token_version BIGINT NOT NULL,
    code_hash TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_expires_at TIMESTAMPTZ NOT NULL,
    code_spent_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX oauth2_grant_code ON oauth2_grant (code_hash);
CREATE INDEX oauth2_grant_user ON oauth2_grant (user_id, created_at, id);
CREATE INDEX oauth2_grant_app ON oauth2_grant (app_id);
CREATE INDEX oauth2_grant_expiry ON oauth2_grant (expires_at);

-- Tokens by their keyed hash. kind: access or refresh. ended_at: revoked, or
-- spent for the next; a refresh token that comes again after that was stolen.
CREATE TABLE oauth2_token (
    hash TEXT PRIMARY KEY,
    grant_id UUID NOT NULL REFERENCES oauth2_grant (id),
    kind TEXT NOT NULL,
    scopes JSONB NOT NULL,
    issued_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ
);
CREATE INDEX oauth2_token_grant ON oauth2_token (grant_id);
CREATE INDEX oauth2_token_expiry ON oauth2_token (expires_at);
