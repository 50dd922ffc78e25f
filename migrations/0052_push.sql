-- Channels on which a controller tells that something changed. push_enabled: what a person wants. push_owner: the process that
-- holds all channels of the controller. push_state, push_since, push_reason: how they stand; empty where its package has none.
-- push_told: the state of which an event told last. push_rest_until: readings that messages ask for begin no earlier, so that they take at most half of the time.
-- lists_all_devices: whether the last reading of all sites listed all devices. Where not, no reading says that one is gone.
ALTER TABLE controller ADD COLUMN push_enabled BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE controller ADD COLUMN push_owner UUID;
ALTER TABLE controller ADD COLUMN push_state TEXT;
ALTER TABLE controller ADD COLUMN push_since TIMESTAMPTZ;
ALTER TABLE controller ADD COLUMN push_reason TEXT;
ALTER TABLE controller ADD COLUMN push_told TEXT;
ALTER TABLE controller ADD COLUMN push_rest_until TIMESTAMPTZ;
ALTER TABLE controller ADD COLUMN lists_all_devices BOOLEAN NOT NULL DEFAULT TRUE;
CREATE INDEX controller_push_owner ON controller (push_owner) WHERE push_owner IS NOT NULL;
CREATE INDEX controller_push_free ON controller (vendor) WHERE push_owner IS NULL AND deleted_at IS NULL;
-- What messages of controllers ask to be read again. kind: device, or a kind of the model. site_ref: the vendor's id of a site;
-- empty for the controller and all of its sites. number: raised by each message, so that one that comes during the reading is
-- not lost. told_at: of the first message. again_at: when it is read once more. taken_at, taken_by: when, by the clock of which
-- process, a reading first took the row under its number.
CREATE TABLE push_wanted (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    number BIGINT NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    told_at TIMESTAMPTZ NOT NULL,
    again_at TIMESTAMPTZ,
    taken_at TIMESTAMPTZ,
    taken_by UUID,
    PRIMARY KEY (controller_id, kind, site_ref)
);
CREATE INDEX push_wanted_due ON push_wanted (due_at);
