-- The step of an apply that a task at the device belongs to: a restart polls it and goes on from there.
ALTER TABLE change ADD COLUMN task_step TEXT;
-- When a person last had the device compared after an attempt whose end was in doubt.
ALTER TABLE change ADD COLUMN verified_at TIMESTAMPTZ;
-- The longest confirm window that may be asked for: the device was told to hold the change for so long.
ALTER TABLE change ADD COLUMN extendable_to_secs BIGINT;
-- A set of changes has a row of its own that holds its plan and its apply; its members point to it.
ALTER TABLE change ADD COLUMN is_set BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE change ADD COLUMN set_id UUID;
ALTER TABLE change ADD COLUMN set_position BIGINT;
CREATE INDEX change_set_members ON change (set_id, set_position) WHERE set_id IS NOT NULL;
-- An organization's changes of one status, the newest first.
CREATE INDEX change_org_status ON change (org_id, status, staged_at, id);
