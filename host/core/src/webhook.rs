//! Deliveries of events by HTTP, in words.

stored_words! {
    /// The state of a delivery.
    pub enum DeliveryState {
        /// It is sent as soon as it is due.
        Pending = "pending",
        Delivered = "delivered",
        /// It is not retried until a replay is requested.
        Dead = "dead",
    }
}
