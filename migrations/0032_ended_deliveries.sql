-- The index by numbers holds only what has ended. PostgreSQL also used it to look for earlier pending deliveries of a device
-- while the table had no statistics, and then read all pending deliveries of the subscription for each one.
DROP INDEX webhook_delivery_seq;
CREATE INDEX webhook_delivery_seq ON webhook_delivery (subscription_id, state, seq) WHERE state <> 'pending';
