-- Files that people upload and that reviewed calls send, and files that devices gave. The bytes are kept in parts, so that
-- no row is large.
-- sha256: empty while the bytes come, and when they are being removed; such a file is shown and sent nowhere.
-- written_at: when its last part came.
-- secret: the sealed key of the bytes, which are sealed piece by piece.
-- controller_id, kind: which device gave it, and what it is there; empty for what people uploaded. The controller may be
-- gone.
CREATE TABLE file (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT,
    secret BYTEA NOT NULL,
    created_by UUID NOT NULL REFERENCES app_user (id),
    created_at TIMESTAMPTZ NOT NULL,
    written_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    controller_id UUID,
    kind TEXT
);
CREATE INDEX file_org ON file (org_id, created_at, id);
CREATE INDEX file_digest ON file (org_id, sha256);
CREATE INDEX file_expiry ON file (expires_at);

CREATE TABLE file_part (
    file_id UUID NOT NULL REFERENCES file (id),
    position BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (file_id, position)
);

-- Which contents the calls of a change send. A pending change keeps the files that have them.
CREATE TABLE change_file (
    change_id UUID NOT NULL REFERENCES change (id),
    org_id UUID NOT NULL REFERENCES organization (id),
    sha256 TEXT NOT NULL,
    PRIMARY KEY (change_id, sha256)
);
CREATE INDEX change_file_digest ON change_file (org_id, sha256);
