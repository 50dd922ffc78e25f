-- Sites of the vendor's own below a controller. site_ref: the vendor's id of it. site_id: the site of ours that it is;
-- empty where that is the controller's own. is_present: whether the last reading found it. One that is ignored is not read.
CREATE TABLE vendor_site (
    controller_id UUID NOT NULL REFERENCES controller (id),
    site_ref TEXT NOT NULL,
    name TEXT NOT NULL,
    site_id UUID REFERENCES site (id),
    is_ignored BOOLEAN NOT NULL,
    is_present BOOLEAN NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    last_seen_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (controller_id, site_ref)
);
CREATE INDEX vendor_site_site ON vendor_site (site_id) WHERE site_id IS NOT NULL;
-- The vendor's site that a device is at, and that a change is for.
ALTER TABLE device ADD COLUMN site_ref TEXT;
ALTER TABLE change ADD COLUMN site_ref TEXT;
