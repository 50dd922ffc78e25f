-- Packages that were installed over the API, and those of a folder that they replaced. The bytes of two are kept for each
-- adapter, in parts, so that no row is large: the package in service, and the one that served before it.
-- installed_by: the name of the user at that time; empty for a package of a folder.
CREATE TABLE adapter_package_kept (
    manifest_sha256 TEXT PRIMARY KEY,
    adapter_id TEXT NOT NULL,
    version TEXT NOT NULL,
    installed_at TIMESTAMPTZ NOT NULL,
    installed_by TEXT
);
CREATE INDEX adapter_package_kept_adapter ON adapter_package_kept (adapter_id);

CREATE TABLE adapter_package_part (
    manifest_sha256 TEXT NOT NULL REFERENCES adapter_package_kept (manifest_sha256),
    position BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (manifest_sha256, position)
);

-- The package of each adapter that every process takes from this database, and the one before it.
-- is_pinned: it serves although a newer version did, until a newer one is installed.
CREATE TABLE adapter_installed (
    adapter_id TEXT PRIMARY KEY,
    manifest_sha256 TEXT NOT NULL REFERENCES adapter_package_kept (manifest_sha256),
    version TEXT NOT NULL,
    before_sha256 TEXT REFERENCES adapter_package_kept (manifest_sha256),
    is_pinned BOOLEAN NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL
);
