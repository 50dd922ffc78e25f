-- One file serves SQLite and PostgreSQL: UUID, TEXT, BIGINT, BOOLEAN, JSONB and
-- TIMESTAMPTZ only; ids and times come from the host, never from defaults.

CREATE TABLE organization (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    settings JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX organization_slug ON organization (slug) WHERE deleted_at IS NULL;

-- One row, inserted by setup; its primary key makes a second setup impossible.
CREATE TABLE setup (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    completed_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE app_user (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    username TEXT NOT NULL,
    email TEXT NOT NULL,
    full_name TEXT,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    token_version BIGINT NOT NULL,
    failed_logins BIGINT NOT NULL,
    locked_until TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX app_user_username ON app_user (LOWER(username)) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX app_user_email ON app_user (LOWER(email)) WHERE deleted_at IS NULL;
CREATE INDEX app_user_org ON app_user (org_id, created_at, id);

-- A login. Holds only the hash of the refresh token that is good now.
CREATE TABLE user_session (
    id UUID PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES app_user (id),
    refresh_hash TEXT NOT NULL,
    token_version BIGINT NOT NULL,
    ip TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX user_session_refresh ON user_session (refresh_hash);
CREATE INDEX user_session_user ON user_session (user_id, created_at, id);

-- Hashes of refresh tokens that were spent. One that comes again is a lost race
-- or theft, which the time tells apart; kept for as long as a token is good.
CREATE TABLE spent_refresh (
    hash TEXT PRIMARY KEY,
    session_id UUID NOT NULL REFERENCES user_session (id),
    spent_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX spent_refresh_time ON spent_refresh (spent_at);

CREATE TABLE site (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    settings JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX site_slug ON site (org_id, slug) WHERE deleted_at IS NULL;
CREATE INDEX site_org ON site (org_id, created_at, id);

-- level: read, write, admin or full. A user without rows may access every site.
CREATE TABLE site_grant (
    user_id UUID NOT NULL REFERENCES app_user (id),
    site_id UUID NOT NULL REFERENCES site (id),
    level TEXT NOT NULL,
    granted_by UUID NOT NULL REFERENCES app_user (id),
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, site_id)
);

-- secret: encrypted fields; sealed by the server, opaque to the database.
CREATE TABLE credential (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    username TEXT,
    has_password BOOLEAN NOT NULL,
    has_api_key BOOLEAN NOT NULL,
    key_id TEXT NOT NULL,
    secret BYTEA NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX credential_org ON credential (org_id, created_at, id);

-- sync_requested: somebody asked for the next reading and waits for its event.
CREATE TABLE controller (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    credential_id UUID NOT NULL REFERENCES credential (id),
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    url TEXT NOT NULL,
    tls JSONB NOT NULL,
    settings JSONB NOT NULL,
    status TEXT NOT NULL,
    firmware TEXT,
    product TEXT,
    last_sync_at TIMESTAMPTZ,
    last_error TEXT,
    sync_interval_secs BIGINT NOT NULL,
    next_sync_at TIMESTAMPTZ,
    sync_requested BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX controller_org ON controller (org_id, created_at, id);
CREATE INDEX controller_site ON controller (site_id);
CREATE INDEX controller_credential ON controller (credential_id);
CREATE INDEX controller_due ON controller (next_sync_at) WHERE deleted_at IS NULL;

CREATE TABLE device (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    identity TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    model TEXT,
    serial TEXT,
    firmware TEXT,
    mac TEXT,
    addresses JSONB NOT NULL,
    attributes JSONB NOT NULL,
    measurements JSONB NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    last_seen_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX device_identity ON device (controller_id, identity);
CREATE INDEX device_all ON device (first_seen_at, id) WHERE deleted_at IS NULL;
CREATE INDEX device_org ON device (org_id, first_seen_at, id) WHERE deleted_at IS NULL;
CREATE INDEX device_org_site ON device (org_id, site_id, first_seen_at, id) WHERE deleted_at IS NULL;

-- A staged change. apply_step is where an apply stands; a restart goes on from there.
CREATE TABLE change (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    vendor TEXT NOT NULL,
    area TEXT NOT NULL,
    feature TEXT NOT NULL,
    operation TEXT NOT NULL,
    payload JSONB NOT NULL,
    also JSONB NOT NULL,
    notes TEXT,
    status TEXT NOT NULL,
    danger TEXT NOT NULL,
    staged_by UUID NOT NULL REFERENCES app_user (id),
    staged_at TIMESTAMPTZ NOT NULL,
    applied_by UUID REFERENCES app_user (id),
    applied_at TIMESTAMPTZ,
    expires_at TIMESTAMPTZ NOT NULL,
    plan JSONB,
    plan_token BYTEA,
    plan_inverse JSONB,
    plan_error JSONB,
    secret BYTEA,
    outcome_state TEXT NOT NULL,
    outcome_message TEXT,
    outcome_detail JSONB,
    apply_step TEXT NOT NULL,
    apply_started_at TIMESTAMPTZ,
    confirm_within_secs BIGINT,
    confirm_deadline TIMESTAMPTZ,
    task JSONB,
    attempts JSONB NOT NULL,
    reverts UUID REFERENCES change (id) DEFERRABLE INITIALLY DEFERRED,
    reverted_by UUID REFERENCES change (id) DEFERRABLE INITIALLY DEFERRED,
    updated_at TIMESTAMPTZ NOT NULL
);
-- One apply at a time per controller, whatever the processes do.
CREATE UNIQUE INDEX change_one_apply ON change (controller_id) WHERE apply_step <> 'idle';
CREATE INDEX change_controller ON change (controller_id, staged_at, id);
CREATE INDEX change_org ON change (org_id, staged_at, id);
CREATE INDEX change_expiry ON change (expires_at) WHERE status = 'pending';

-- The outbox: written with its cause, published after commit, read by range.
CREATE TABLE event (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    seq BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    site_id UUID,
    controller_id UUID,
    device_id UUID,
    causation_id UUID,
    schema_version BIGINT NOT NULL,
    payload JSONB NOT NULL,
    occurred_at TIMESTAMPTZ NOT NULL,
    published_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX event_seq ON event (org_id, seq);
CREATE INDEX event_unpublished ON event (occurred_at, org_id, seq) WHERE published_at IS NULL;

-- Heads of the per-organization sequences; updating the row orders the writers.
-- occurred_at: the newest event's time, behind which none may fall.
CREATE TABLE event_head (
    org_id UUID PRIMARY KEY REFERENCES organization (id),
    seq BIGINT NOT NULL,
    occurred_at TIMESTAMPTZ NOT NULL
);

-- A hash chain per organization: hash covers previous_hash and the row.
CREATE TABLE audit (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    seq BIGINT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id UUID,
    detail JSONB NOT NULL,
    request_id TEXT,
    ip TEXT,
    occurred_at TIMESTAMPTZ NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_seq ON audit (org_id, seq);
CREATE INDEX audit_time ON audit (org_id, occurred_at, seq);

CREATE TABLE audit_head (
    org_id UUID PRIMARY KEY REFERENCES organization (id),
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL
);
