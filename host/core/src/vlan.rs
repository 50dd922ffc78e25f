//! Words about the VLANs of a site: how its controllers differ, and what becomes of a difference.

stored_words! {
    /// How a controller differs from what the VLANs of its site are compared with.
    pub enum VlanFault {
        /// It does not have a VLAN that it should have.
        Missing = "missing",
        /// It has a VLAN that it should not have.
        Extra = "extra",
        NameDiffers = "name_differs",
        /// A subnet of the VLAN has addresses that a subnet of another one has, too.
        SubnetOverlaps = "subnet_overlaps",
        /// Packets without a tag change their VLAN on a link.
        NativeMismatch = "native_mismatch",
        /// One end of a link tags the VLAN, and the other does not.
        TaggedOnOneEnd = "tagged_on_one_end",
        /// Nothing at the site uses the VLAN.
        Orphan = "orphan",
    }
}

stored_words! {
    /// What becomes of a difference between the intent of a site and one of its controllers.
    pub enum OnDrift {
        /// An event tells of it.
        Report = "report",
        /// An event tells of it, and the changes that resolve it are staged. A person applies them.
        Stage = "stage",
    }
}
