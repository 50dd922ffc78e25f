-- The storage of a plugin in an organization. Values are of a generation: those of the living one are the storage.
-- version: that of the package that took the values last. migrated_to: the version that brought them to its own form, if any.
-- last_generation: numbers are given once.
-- draft_generation: a copy that a newer package is bringing to its form; nothing else is written meanwhile.
-- kept_*: what was stored before the last migration, for a return to the version before. kept_until is empty while the last
-- of these values are being forgotten. sweep_at: from then on values of generations that are not named here are forgotten.
CREATE TABLE plugin_storage (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    version TEXT NOT NULL,
    migrated_to TEXT,
    generation BIGINT NOT NULL DEFAULT 0,
    last_generation BIGINT NOT NULL DEFAULT 0,
    draft_generation BIGINT,
    kept_version TEXT,
    kept_migrated_to TEXT,
    kept_generation BIGINT,
    kept_until TIMESTAMPTZ,
    sweep_at TIMESTAMPTZ,
    PRIMARY KEY (org_id, plugin_uid)
);
CREATE INDEX plugin_storage_plugin ON plugin_storage (plugin_uid);
CREATE INDEX plugin_storage_kept ON plugin_storage (kept_generation) WHERE kept_generation IS NOT NULL;
CREATE INDEX plugin_storage_sweep ON plugin_storage (sweep_at) WHERE sweep_at IS NOT NULL;

-- What is there is of the package that serves, or served last.
INSERT INTO plugin_storage (org_id, plugin_uid, version)
SELECT k.org_id, k.plugin_uid, v.version
FROM (
    SELECT o.org_id, o.plugin_uid FROM plugin_organization o
    UNION SELECT s.org_id, s.plugin_uid FROM plugin_value s
) k
JOIN plugin p ON p.id = k.plugin_uid
JOIN plugin_version v ON v.manifest_sha256 = p.serving_sha256;

CREATE TABLE plugin_stored (
    org_id UUID NOT NULL REFERENCES organization (id),
    plugin_uid UUID NOT NULL REFERENCES plugin (id),
    generation BIGINT NOT NULL,
    name TEXT NOT NULL,
    bytes BYTEA NOT NULL,
    size_bytes BIGINT NOT NULL,
    version BIGINT NOT NULL,
    expires_at TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (org_id, plugin_uid, generation, name)
);
INSERT INTO plugin_stored (org_id, plugin_uid, generation, name, bytes, size_bytes, version, expires_at, updated_at)
SELECT org_id, plugin_uid, 0, name, bytes, size_bytes, version, expires_at, updated_at FROM plugin_value;
DROP TABLE plugin_value;
ALTER TABLE plugin_stored RENAME TO plugin_value;
CREATE INDEX plugin_value_expiry ON plugin_value (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX plugin_value_plugin ON plugin_value (plugin_uid);
