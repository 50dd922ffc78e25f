-- free, standard or enterprise: how much an organization may have. The limits are in the code.
ALTER TABLE organization ADD COLUMN tier TEXT NOT NULL DEFAULT 'standard';

-- A named set of permissions of an organization, as scopes of API keys. It decides
-- nothing about what a user may do; permissions is an array of words.
CREATE TABLE stored_role (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    name TEXT NOT NULL,
    description TEXT,
    permissions JSONB NOT NULL,
    created_by UUID NOT NULL REFERENCES app_user (id),
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX stored_role_name ON stored_role (org_id, LOWER(name)) WHERE deleted_at IS NULL;
CREATE INDEX stored_role_org ON stored_role (org_id, created_at, id);

CREATE INDEX site_grant_site ON site_grant (site_id);

-- What a dashboard counts of an organization's changes, without its whole past.
CREATE INDEX change_pending ON change (org_id) WHERE status = 'pending';
CREATE INDEX change_applied ON change (org_id, applied_at) WHERE applied_at IS NOT NULL;
