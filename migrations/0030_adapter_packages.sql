-- Which key provides an adapter, and the highest version of it that ever served. Another key's package and an older
-- version are refused.
CREATE TABLE adapter_binding (
    adapter_id TEXT PRIMARY KEY,
    publisher TEXT NOT NULL,
    key_id TEXT NOT NULL,
    version TEXT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    bound_at TIMESTAMPTZ NOT NULL
);

-- Every package that ever served. rules: what it may do at a device, in words. audited_at: empty until it is in the
-- audit log, which needs an organization.
CREATE TABLE adapter_package (
    manifest_sha256 TEXT PRIMARY KEY,
    adapter_id TEXT NOT NULL,
    version TEXT NOT NULL,
    component_sha256 TEXT NOT NULL,
    publisher TEXT NOT NULL,
    key_id TEXT NOT NULL,
    rules JSONB NOT NULL,
    first_served_at TIMESTAMPTZ NOT NULL,
    audited_at TIMESTAMPTZ
);
CREATE INDEX adapter_package_unaudited ON adapter_package (manifest_sha256) WHERE audited_at IS NULL;
