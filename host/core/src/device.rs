//! What people decide about a device. What it is like, its controller says.

stored_words! {
    /// Whether somebody works on the device.
    pub enum DeviceState {
        Active = "active",
        /// It may come and go: that it is offline is recorded, and alarms nobody.
        Maintenance = "maintenance",
    }
}
