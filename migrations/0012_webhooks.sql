-- Payloads that an organization writes for its webhooks. payload: {"payload": …}, with references to the event.
CREATE TABLE webhook_template (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    payload JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX webhook_template_name ON webhook_template (org_id, LOWER(name)) WHERE deleted_at IS NULL;

-- Who gets events by HTTP. secret: the signing secret and the values of headers, sealed by the server; header_names
-- are for people. after_seq: events up to it are not delivered. author_id: whose rights decide what is delivered.
CREATE TABLE webhook_subscription (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    events JSONB NOT NULL,
    site_id UUID REFERENCES site (id),
    template_id UUID REFERENCES webhook_template (id),
    header_names JSONB NOT NULL,
    secret BYTEA NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    after_seq BIGINT NOT NULL,
    author_id UUID NOT NULL REFERENCES app_user (id),
    consecutive_failures BIGINT NOT NULL,
    last_delivered_at TIMESTAMPTZ,
    last_failed_at TIMESTAMPTZ,
    last_error TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX webhook_subscription_org ON webhook_subscription (org_id, created_at, id) WHERE deleted_at IS NULL;

-- One event on its way to one subscription. event: as it is sent, so that it can be sent again after the event was
-- forgotten. owner: the process that sends it right now.
CREATE TABLE webhook_delivery (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    subscription_id UUID NOT NULL REFERENCES webhook_subscription (id),
    event_id UUID NOT NULL,
    event_type TEXT NOT NULL,
    seq BIGINT NOT NULL,
    device_id UUID,
    event JSONB NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at TIMESTAMPTZ,
    owner UUID,
    last_status BIGINT,
    last_error TEXT,
    response TEXT,
    response_is_truncated BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX webhook_delivery_event ON webhook_delivery (subscription_id, event_id);
CREATE INDEX webhook_delivery_list ON webhook_delivery (subscription_id, created_at, seq, id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (next_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_lane ON webhook_delivery (subscription_id, device_id, seq) WHERE state = 'pending';
CREATE INDEX webhook_delivery_owner ON webhook_delivery (owner) WHERE owner IS NOT NULL;
CREATE INDEX webhook_delivery_ended ON webhook_delivery (state, ended_at) WHERE ended_at IS NOT NULL;
