//! Readings of controllers that a user requested.

stored_words! {
    /// Where a sync stands.
    pub enum SyncState {
        /// It begins when the service has a place for it.
        Queued = "queued",
        /// The controller is being read.
        Running = "running",
        Succeeded = "succeeded",
        /// `error` says why.
        Failed = "failed",
    }
}
