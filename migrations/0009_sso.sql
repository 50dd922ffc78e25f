-- Where an organization's people sign in beside the password: an OpenID provider, a directory, a SAML provider.
-- settings: what the kind needs, without secrets. secret: client secret or bind password, sealed by the server.
-- role_mapping: an object from the provider's groups to roles.
CREATE TABLE identity_provider (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    allow_registration BOOLEAN NOT NULL,
    allow_linking BOOLEAN NOT NULL,
    default_role TEXT NOT NULL,
    role_mapping JSONB NOT NULL,
    settings JSONB NOT NULL,
    secret BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX identity_provider_org ON identity_provider (org_id, created_at, id);

-- Who a user is at a provider. issuer is part of the name: a provider that is pointed elsewhere names others.
-- created_user: the account was made by the provider, which then also says its role.
CREATE TABLE user_identity (
    id UUID PRIMARY KEY,
    provider_id UUID NOT NULL REFERENCES identity_provider (id),
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id UUID NOT NULL REFERENCES app_user (id),
    created_user BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_login_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX user_identity_subject ON user_identity (provider_id, issuer, subject);
CREATE INDEX user_identity_user ON user_identity (user_id);

-- A sign-in that was sent to an OpenID provider and has not come back. state and the browser's cookie are kept as
-- hashes; secret holds what proves the way back (PKCE verifier and nonce), sealed. Taken once, or forgotten.
CREATE TABLE sso_attempt (
    id UUID PRIMARY KEY,
    provider_id UUID NOT NULL REFERENCES identity_provider (id),
    state_hash TEXT NOT NULL,
    browser_hash TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    secret BYTEA NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX sso_attempt_state ON sso_attempt (state_hash);
CREATE INDEX sso_attempt_expiry ON sso_attempt (expires_at, id);
