-- A reading of a controller that a user requested; clients can see its progress.
-- devices_known: how many devices the controller had when the reading began, for the progress.
CREATE TABLE controller_sync (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    state TEXT NOT NULL,
    requested_by UUID,
    devices_seen BIGINT NOT NULL,
    devices_known BIGINT NOT NULL,
    error TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ
);
CREATE INDEX controller_sync_controller ON controller_sync (controller_id, created_at, id);
CREATE INDEX controller_sync_open ON controller_sync (controller_id) WHERE ended_at IS NULL;
