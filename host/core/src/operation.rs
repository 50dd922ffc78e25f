//! What steps do, in words.

stored_words! {
    /// Where an operation comes from.
    pub enum OperationTier {
        Native = "native",
        Plugin = "plugin",
    }
}

stored_words! {
    /// What an operation does to the world.
    pub enum OperationKind {
        /// Asks, and changes nothing.
        Read = "read",
        /// Stages a change, which a person reviews and applies.
        Write = "write",
        /// Tells somebody at once.
        Sink = "sink",
    }
}

stored_words! {
    /// Why a step failed.
    pub enum StepErrorCode {
        SsrfBlocked = "SSRF_BLOCKED",
        BadStatus = "BAD_STATUS",
        DeliveryError = "DELIVERY_ERROR",
        PermissionDenied = "PERMISSION_DENIED",
        UnknownOperation = "UNKNOWN_OPERATION",
        InvalidParams = "INVALID_PARAMS",
        TemplateError = "TEMPLATE_ERROR",
        NotFound = "NOT_FOUND",
        AdapterError = "ADAPTER_ERROR",
        RateLimited = "RATE_LIMITED",
        Timeout = "TIMEOUT",
        Internal = "INTERNAL",
    }
}
