//! How plugins stand.

stored_words! {
    /// How a plugin, or one package of it, stands. A package that was sent goes through the first five; a person agrees to what
    /// it may do; then the plugin is active until it is disabled, fails too often, or is removed.
    pub enum PluginState {
        /// A package was sent.
        Received = "received",
        /// It is what a trusted publisher signed.
        Verified = "verified",
        /// Its component was compiled.
        Compiled = "compiled",
        /// Its component imports and exports what it may and has to.
        Linked = "linked",
        /// Its schemas and declarations were judged; it could serve.
        Checked = "checked",
        /// A person has to agree to what it may do.
        AwaitingConsent = "awaiting_consent",
        /// It serves.
        Active = "active",
        /// A person has switched it off. What it keeps stays.
        Disabled = "disabled",
        /// It failed so often that it takes no calls until it is released.
        Quarantined = "quarantined",
        /// The package before it was put back.
        RolledBack = "rolled_back",
        /// It cannot serve; the reason says why.
        Rejected = "rejected",
        /// It is gone. What it kept is forgotten later.
        Removed = "removed",
    }
}

stored_words! {
    /// Where a package comes from.
    pub enum PackageOrigin {
        /// A `super_admin` sent it, and trusts its key.
        Upload = "upload",
        /// The catalogue lists it with its key.
        Catalog = "catalog",
    }
}
