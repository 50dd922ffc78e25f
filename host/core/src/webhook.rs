//! Deliveries of events by HTTP, in words.

stored_words! {
    /// What became of a delivery.
    pub enum DeliveryState {
        /// It is sent as soon as it is due.
        Pending = "pending",
        Delivered = "delivered",
        /// Nobody tries again until somebody asks for it.
        Dead = "dead",
    }
}
