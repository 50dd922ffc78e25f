//! Tiers of organizations. What each allows is the server's rule.

stored_words! {
    /// How much an organization may have.
    pub enum Tier {
        Free = "free",
        Standard = "standard",
        Enterprise = "enterprise",
    }
}
