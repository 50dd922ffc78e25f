-- How far each purpose that follows the events has come, by organization; without a row, before the first.
-- What follows from an event is written in the transaction that moves the row on.
CREATE TABLE event_consumer (
    name TEXT NOT NULL,
    org_id UUID NOT NULL REFERENCES organization (id),
    seq BIGINT NOT NULL,
    PRIMARY KEY (name, org_id)
);

-- Those that begin with this version do not go back to what was before it.
INSERT INTO event_consumer (name, org_id, seq) SELECT 'fabric', org_id, seq FROM event_head;
INSERT INTO event_consumer (name, org_id, seq) SELECT 'webhooks', org_id, seq FROM event_head;

-- The run of a Connection that caused the event, if one did.
ALTER TABLE event ADD COLUMN run_id UUID;
