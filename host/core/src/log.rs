//! How grave a kept log line is.

stored_words! {
    /// Ordered by gravity. Finer lines are not kept.
    pub enum LogLevel {
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}
