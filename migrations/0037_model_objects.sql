-- Objects in the words of the model, as the last readings of their controllers found them. site_ref: the vendor's id of
-- the site; empty where the object is the controller's. digest: of all that counts as a change. searched: what a search
-- looks at, in lower case. reading_id: the reading that saw it last.
CREATE TABLE model_object (
    id UUID PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    origin TEXT NOT NULL,
    device_key TEXT,
    native JSONB,
    fields JSONB NOT NULL,
    digest TEXT NOT NULL,
    searched TEXT NOT NULL,
    reading_id UUID NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    observed_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX model_object_key ON model_object (controller_id, kind, site_ref, key);
CREATE INDEX model_object_label ON model_object (org_id, kind, LOWER(label), id);
CREATE INDEX model_object_site ON model_object (site_id, kind);
CREATE INDEX model_object_changed ON model_object (org_id, kind, changed_at, id);
CREATE INDEX model_object_device ON model_object (controller_id, device_key, kind) WHERE device_key IS NOT NULL;
-- How the readings of a kind at a controller, or at a site of it, went. begun_at: of the last one; empty makes it due.
-- read_at: when one last came to the end of the list. stopped_at: when the component was last stopped in it. created,
-- changed and removed count the differences that no event tells of yet.
CREATE TABLE model_reading (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    begun_at TIMESTAMPTZ,
    read_at TIMESTAMPTZ,
    stopped_at TIMESTAMPTZ,
    objects BIGINT NOT NULL,
    left_out BIGINT NOT NULL,
    complete TEXT NOT NULL,
    error TEXT,
    created BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    removed BIGINT NOT NULL,
    PRIMARY KEY (controller_id, kind, site_ref)
);
-- Differences that a reading under way found. They become events when it ends.
CREATE TABLE model_difference (
    controller_id UUID NOT NULL REFERENCES controller (id),
    kind TEXT NOT NULL,
    site_ref TEXT NOT NULL,
    number BIGINT NOT NULL,
    payload JSONB NOT NULL,
    PRIMARY KEY (controller_id, kind, site_ref, number)
);
