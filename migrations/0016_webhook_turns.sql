-- Of what is pending of one subscription and one device, only the first has a next_at: the others wait for it.
UPDATE webhook_delivery SET next_at = NULL
WHERE state = 'pending' AND EXISTS (
    SELECT 1 FROM webhook_delivery e
    WHERE e.subscription_id = webhook_delivery.subscription_id AND e.device_id = webhook_delivery.device_id
        AND e.state = 'pending' AND e.seq < webhook_delivery.seq);

-- Where the event happened, so that it can be judged once more before it is sent.
ALTER TABLE webhook_delivery ADD COLUMN site_id UUID;
UPDATE webhook_delivery SET site_id = COALESCE(
    (SELECT e.site_id FROM event e WHERE e.id = webhook_delivery.event_id),
    (SELECT s.site_id FROM webhook_subscription s WHERE s.id = webhook_delivery.subscription_id));

-- due_at: from when something of it can be sent; who was served goes to the end. unqueued: events that were not queued
-- because too many were waiting, with the first and the last of their numbers. told_problem: what its organization's
-- administrators were told that stands against it.
ALTER TABLE webhook_subscription ADD COLUMN due_at TIMESTAMPTZ;
ALTER TABLE webhook_subscription ADD COLUMN unqueued BIGINT NOT NULL DEFAULT 0;
ALTER TABLE webhook_subscription ADD COLUMN unqueued_from BIGINT;
ALTER TABLE webhook_subscription ADD COLUMN unqueued_to BIGINT;
ALTER TABLE webhook_subscription ADD COLUMN told_problem TEXT;
UPDATE webhook_subscription SET due_at = (
    SELECT MIN(d.next_at) FROM webhook_delivery d
    WHERE d.subscription_id = webhook_subscription.id AND d.state = 'pending' AND d.owner IS NULL);
CREATE INDEX webhook_subscription_due ON webhook_subscription (due_at, id)
    WHERE due_at IS NOT NULL AND is_enabled AND deleted_at IS NULL;

-- What can be sent of a subscription; what every process is sending; what ended, by the events' numbers.
DROP INDEX webhook_delivery_due;
DROP INDEX webhook_delivery_owner;
CREATE INDEX webhook_delivery_ready ON webhook_delivery (subscription_id, next_at, seq, id)
    WHERE state = 'pending' AND owner IS NULL AND next_at IS NOT NULL;
CREATE INDEX webhook_delivery_owner ON webhook_delivery (owner, subscription_id, org_id) WHERE owner IS NOT NULL;
CREATE INDEX webhook_delivery_seq ON webhook_delivery (subscription_id, state, seq);
