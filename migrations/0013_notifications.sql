-- Where an organization's notifications go: mail addresses, a webhook, Slack, Teams, ntfy.
-- settings: what the kind needs, without secrets. secret: an address that is one, a token or a signing secret, sealed
-- by the server.
CREATE TABLE channel (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    settings JSONB NOT NULL,
    secret BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX channel_org ON channel (org_id, created_at, id);

-- A notification inside the service. user_id: whom it is for where audience is 'user'.
-- origin: what wrote it, once: the same again is the same notice.
CREATE TABLE notice (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    audience TEXT NOT NULL,
    user_id UUID REFERENCES app_user (id),
    severity TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX notice_org ON notice (org_id, created_at, id);
CREATE INDEX notice_age ON notice (created_at, id);
CREATE UNIQUE INDEX notice_origin ON notice (org_id, origin);

-- Who has read which notice.
CREATE TABLE notice_read (
    notice_id UUID NOT NULL REFERENCES notice (id) ON DELETE CASCADE,
    user_id UUID NOT NULL REFERENCES app_user (id),
    read_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (notice_id, user_id)
);
