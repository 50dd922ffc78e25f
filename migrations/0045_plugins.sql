-- Plugins that were installed over the API, and how each stands. A removed one keeps its row: the events that it emitted
-- stay readable, and what it kept is forgotten after a while.
-- plugin_id: its id in its manifest, which operations, events and permissions begin with.
-- serving_sha256: the package that serves when the plugin is active. before_sha256: the one before it, which a rollback
-- puts back. waiting_sha256: the one that waits for consent.
CREATE TABLE plugin (
    id UUID PRIMARY KEY,
    plugin_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    serving_sha256 TEXT,
    before_sha256 TEXT,
    waiting_sha256 TEXT,
    revision BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    removed_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX plugin_name ON plugin (plugin_id);

-- Every package of a plugin that was sent and is what its publisher signed. The bytes are kept next to those of adapters.
-- manifest: as it was signed. step: what a rejected one failed at. installed_by: the name of the user at that time.
CREATE TABLE plugin_version (
    manifest_sha256 TEXT PRIMARY KEY,
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    version TEXT NOT NULL,
    component_sha256 TEXT NOT NULL,
    publisher TEXT NOT NULL,
    key_id TEXT NOT NULL,
    manifest JSONB NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    step TEXT,
    installed_at TIMESTAMPTZ NOT NULL,
    installed_by TEXT NOT NULL
);
CREATE INDEX plugin_version_plugin ON plugin_version (plugin_uid, installed_at);

-- What a person agreed to that a package may do. granted: the capabilities that were agreed to.
CREATE TABLE plugin_grant (
    id UUID PRIMARY KEY,
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    manifest_sha256 TEXT NOT NULL,
    version TEXT NOT NULL,
    grant_hash TEXT NOT NULL,
    granted JSONB NOT NULL,
    granted_by UUID,
    granted_by_name TEXT NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX plugin_grant_plugin ON plugin_grant (plugin_uid, granted_at, id);

-- Where organizations have switched a plugin on, with their settings of it.
CREATE TABLE plugin_organization (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    is_enabled BOOLEAN NOT NULL,
    settings JSONB NOT NULL,
    revision BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX plugin_organization_one ON plugin_organization (org_id, plugin_uid);
CREATE INDEX plugin_organization_plugin ON plugin_organization (plugin_uid);

-- Values of an organization that the host puts into a plugin's requests, each sealed for its row.
-- origin: where it was to be sent when it was given. It is not sent anywhere else.
CREATE TABLE plugin_secret (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    name TEXT NOT NULL,
    origin TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX plugin_secret_one ON plugin_secret (org_id, plugin_uid, name);
CREATE INDEX plugin_secret_plugin ON plugin_secret (plugin_uid);

-- What plugins keep for an organization. version: grows with each write of a key, by the time. size_bytes: of key
-- and value, and what a row costs besides.
CREATE TABLE plugin_value (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    name TEXT NOT NULL,
    bytes BYTEA NOT NULL,
    size_bytes BIGINT NOT NULL,
    version BIGINT NOT NULL,
    expires_at TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (org_id, plugin_uid, name)
);
CREATE INDEX plugin_value_expiry ON plugin_value (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX plugin_value_plugin ON plugin_value (plugin_uid);

-- Keys by which plugins say that an event is the same as one before.
CREATE TABLE plugin_emitted (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    dedup_key TEXT NOT NULL,
    emitted_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (org_id, plugin_uid, dedup_key)
);
CREATE INDEX plugin_emitted_time ON plugin_emitted (emitted_at);
CREATE INDEX plugin_emitted_plugin ON plugin_emitted (plugin_uid);

-- The owner of an operation that a broken Connection waits for; empty where something else broke it.
ALTER TABLE connection ADD COLUMN waits_for TEXT;
CREATE INDEX connection_waits ON connection (waits_for, id) WHERE waits_for IS NOT NULL;
