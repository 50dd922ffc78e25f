-- revision: how often people have edited the row, its removal and its restore included. Readings and counts leave it as it
-- is. The entity tag of an object is made of it.
ALTER TABLE organization ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE app_user ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE stored_role ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE site ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE credential ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE controller ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE device ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE channel ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE webhook_template ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE webhook_subscription ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE identity_provider ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE oauth2_app ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
-- The entity tag of the object that was created; empty where the answer has none.
ALTER TABLE idempotency ADD COLUMN tag TEXT NOT NULL DEFAULT '';
