-- What this service believes of a catalogue of packages. A row for each beginning of trust: going back to one goes on from
-- what was known then.
-- trust: a first root, a pinned key, or nothing. state: what the last good update left. revision: counts changes of
-- it. tried_at, outcome, step, reason: of the last update, good or not.
CREATE TABLE package_catalog (
    id UUID PRIMARY KEY,
    trust TEXT NOT NULL,
    state JSONB NOT NULL,
    revision BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    tried_at TIMESTAMPTZ,
    outcome TEXT,
    step TEXT,
    reason TEXT
);
CREATE UNIQUE INDEX package_catalog_trust ON package_catalog (trust);

-- The bytes of the catalogue that the state names.
CREATE TABLE package_catalog_part (
    catalog_id UUID NOT NULL REFERENCES package_catalog (id),
    position BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (catalog_id, position)
);

-- What may not be installed or may not run any more. What any catalogue has said stays in force, whichever one is followed.
CREATE TABLE package_revocation (
    catalog_id UUID NOT NULL REFERENCES package_catalog (id),
    position BIGINT NOT NULL,
    entry JSONB NOT NULL,
    PRIMARY KEY (catalog_id, position)
);

-- One row, made when it is first locked. Who writes that a package may run locks it, and so does who writes revocations: one
-- sees what the other wrote. revision: counts changes of what is revoked.
CREATE TABLE package_gate (
    id BIGINT PRIMARY KEY,
    revision BIGINT NOT NULL
);

-- Keys of publishers in addition to those of the file.
-- ids: packages that the key may sign. listed_for: the plugin that a catalogue listed it for when that was installed; empty
-- where a person trusts it.
CREATE TABLE publisher_key (
    id UUID PRIMARY KEY,
    key_id TEXT NOT NULL,
    publisher TEXT NOT NULL,
    public_key TEXT NOT NULL,
    ids JSONB NOT NULL,
    listed_for TEXT NOT NULL,
    added_at TIMESTAMPTZ NOT NULL,
    added_by TEXT NOT NULL
);
CREATE UNIQUE INDEX publisher_key_one ON publisher_key (key_id, listed_for, publisher);

-- What organizations think of plugins of the catalogue: one rating each.
CREATE TABLE plugin_rating (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_id TEXT NOT NULL,
    stars BIGINT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX plugin_rating_one ON plugin_rating (plugin_id, org_id);
CREATE INDEX plugin_rating_org ON plugin_rating (org_id);

-- archive_sha256, signed_by: what revocations may name. origin: who vouched for the package, a person who sent it or the
-- catalogue.
ALTER TABLE plugin_version ADD COLUMN archive_sha256 TEXT NOT NULL DEFAULT '';
ALTER TABLE plugin_version ADD COLUMN signed_by JSONB NOT NULL DEFAULT '[]';
ALTER TABLE plugin_version ADD COLUMN origin TEXT NOT NULL DEFAULT 'upload';
