//! Words of apps that users let act for them.

stored_words! {
    /// Whether an app can keep a secret: it can on its owner's server, and cannot on its user's machine.
    pub enum ClientType {
        Confidential = "confidential",
        Public = "public",
    }
}

stored_words! {
    pub enum TokenKind {
        Access = "access",
        Refresh = "refresh",
    }
}
