//! Channels on which controllers tell that something changed.

stored_words! {
    /// Whether changes at a controller are told at once.
    pub enum PushState {
        /// The channels are being opened, or were lost a moment ago.
        Connecting = "connecting",
        /// All channels are open: what changes is read again within seconds.
        Live = "live",
        /// What changes is seen when the controller is read at its interval; `reason` says why.
        Polling = "polling",
    }
}
