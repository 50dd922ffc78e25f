-- A set of changes over several controllers. Its parts are rows of `change`: a change, or the row of a set of one controller.
-- confirm_deadline: the end of the window that spans the whole set.
-- reason: why a person discarded it.
CREATE TABLE change_saga (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    status TEXT NOT NULL,
    state TEXT NOT NULL,
    step TEXT NOT NULL,
    message TEXT,
    created_by UUID NOT NULL REFERENCES app_user (id),
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    applied_by UUID,
    applied_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    confirm_within_secs BIGINT,
    extendable_to_secs BIGINT,
    confirm_deadline TIMESTAMPTZ,
    attempts JSONB NOT NULL,
    reason TEXT,
    reverts UUID,
    reverted_by UUID,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX change_saga_under_way ON change_saga (id) WHERE step <> 'idle';
CREATE INDEX change_saga_expiry ON change_saga (expires_at) WHERE status = 'pending';

-- phase: what the present attempt has decided for the part. The row of `change` has its progress.
-- hops: how far the controller is from the service, as far as the topology says.
-- is_locked: no other change is applied to the controller meanwhile.
CREATE TABLE change_saga_part (
    saga_id UUID NOT NULL REFERENCES change_saga (id),
    position BIGINT NOT NULL,
    change_id UUID NOT NULL REFERENCES change (id),
    controller_id UUID NOT NULL,
    hops BIGINT,
    phase TEXT NOT NULL,
    is_locked BOOLEAN NOT NULL,
    PRIMARY KEY (saga_id, change_id)
);
CREATE INDEX change_saga_part_of ON change_saga_part (saga_id, position);
-- At most one set locks a controller, also with several processes.
CREATE UNIQUE INDEX change_saga_one_lock ON change_saga_part (controller_id) WHERE is_locked;

-- The set over several controllers that a change belongs to. The row of a set of one controller has it, too.
ALTER TABLE change ADD COLUMN saga_id UUID;
CREATE INDEX change_saga_members ON change (saga_id) WHERE saga_id IS NOT NULL;
