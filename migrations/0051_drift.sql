-- How far the readings of a list of the model were compared with what is wanted. begun_at, read_at: of the reading that was
-- compared last. adapter: the package that read it. versions: of the controller and its devices, as they were then.
-- left_out: objects that are not followed, because they are too many or too large.
CREATE TABLE wanted_list (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    begun_at TIMESTAMPTZ NOT NULL,
    read_at TIMESTAMPTZ NOT NULL,
    adapter TEXT NOT NULL,
    versions JSONB NOT NULL,
    left_out BIGINT NOT NULL,
    PRIMARY KEY (controller_id, kind, site_ref)
);
-- What is wanted of an object that people can change. basis: whether that was observed, applied or adopted. change_id: the
-- change that was applied last. fields: those that can be written. seen_digest: of the object as it was compared last.
CREATE TABLE wanted_object (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    device_key TEXT,
    basis TEXT NOT NULL,
    change_id UUID,
    fields JSONB NOT NULL,
    seen_digest TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (controller_id, kind, site_ref, key)
);
-- What a vendor makes of a value by itself, as changes showed that were applied. digest: of both values. pair: both values.
CREATE TABLE vendor_rewrite (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    digest TEXT NOT NULL,
    pair JSONB NOT NULL,
    change_id UUID NOT NULL,
    learned_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (controller_id, kind, field, digest)
);
-- Differences between what is wanted of an object and what was observed. change: created, changed or removed. label: who
-- made it, as far as the evidence tells. differences: each field with both values, its label and the reasons.
-- wanted_change_id: the change that was applied last before. put_back_id: the staged change that brings back what is wanted.
CREATE TABLE drift (
    id UUID PRIMARY KEY,
    revision BIGINT NOT NULL,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    key TEXT NOT NULL,
    object_label TEXT NOT NULL,
    device_key TEXT,
    change TEXT NOT NULL,
    label TEXT NOT NULL,
    differences JSONB NOT NULL,
    basis TEXT NOT NULL,
    wanted_change_id UUID,
    status TEXT NOT NULL,
    put_back_id UUID,
    said_by UUID,
    notes TEXT,
    closed_by UUID,
    closed_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX drift_open ON drift (controller_id, kind, site_ref, key) WHERE closed_at IS NULL;
CREATE INDEX drift_organization ON drift (org_id, updated_at, id);
CREATE INDEX drift_closed ON drift (closed_at) WHERE closed_at IS NOT NULL;
