//! Decisions of people about a device. Its controller says what the device is like.

stored_words! {
    /// Whether people are working on the device.
    pub enum DeviceState {
        Active = "active",
        /// The device may come and go: when it is offline, this is recorded and raises no alarm.
        Maintenance = "maintenance",
    }
}
