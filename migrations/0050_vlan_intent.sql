-- Which controller of a site holds the intent of its VLANs. limb_ids: the controllers that follow it; null where all others
-- of the site do. set_by: the user with whose rights differences are staged by policy. read_at: when the intent was last
-- taken from the readings of the brain. checked_at: when the site was last compared; empty makes it due.
CREATE TABLE site_brain (
    site_id UUID PRIMARY KEY REFERENCES site (id),
    org_id UUID NOT NULL REFERENCES organization (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    limb_ids JSONB,
    on_drift TEXT NOT NULL,
    revision BIGINT NOT NULL,
    set_by UUID NOT NULL REFERENCES app_user (id),
    set_at TIMESTAMPTZ NOT NULL,
    read_at TIMESTAMPTZ,
    checked_at TIMESTAMPTZ
);
CREATE INDEX site_brain_controller ON site_brain (controller_id);
-- VLANs that a site is to have, as its brain last said.
CREATE TABLE canonical_vlan (
    id UUID PRIMARY KEY,
    revision BIGINT NOT NULL DEFAULT 1,
    org_id UUID NOT NULL REFERENCES organization (id),
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    vlan_id BIGINT NOT NULL,
    name TEXT,
    subnets JSONB NOT NULL,
    gateway TEXT,
    dhcp TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX canonical_vlan_number ON canonical_vlan (site_id, vlan_id) WHERE deleted_at IS NULL;
CREATE INDEX canonical_vlan_org ON canonical_vlan (org_id, vlan_id, id);
-- Where a controller of a site differs from the intent. site_ref: the vendor's id of the site; empty where the VLANs are the
-- controller's. place: the end of the link that it is about; empty where it is about none. staged_at: when what resolves it
-- was last staged by policy.
CREATE TABLE vlan_drift (
    site_id UUID NOT NULL REFERENCES site (id),
    controller_id UUID NOT NULL REFERENCES controller (id),
    site_ref TEXT NOT NULL,
    class TEXT NOT NULL,
    vlan_id BIGINT NOT NULL,
    place TEXT NOT NULL,
    expected TEXT,
    found TEXT,
    since TIMESTAMPTZ NOT NULL,
    staged_at TIMESTAMPTZ,
    PRIMARY KEY (site_id, controller_id, site_ref, class, vlan_id, place)
);
