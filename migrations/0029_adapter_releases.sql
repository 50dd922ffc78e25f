-- When a person last released an adapter that was suspended: every process that suspended it before takes calls again.
CREATE TABLE adapter_release (
    adapter_id TEXT PRIMARY KEY,
    component_sha256 TEXT NOT NULL,
    released_at TIMESTAMPTZ NOT NULL
);
