//! The words for notifications: where they go, how grave they are, and their audience.

stored_words! {
    /// What a channel is.
    pub enum ChannelKind {
        Email = "email",
        Webhook = "webhook",
        Slack = "slack",
        Teams = "teams",
        Ntfy = "ntfy",
    }
}

stored_words! {
    /// How grave a notification is.
    pub enum Severity {
        Info = "info",
        Warning = "warning",
        Critical = "critical",
    }
}

stored_words! {
    /// The audience of a notice.
    pub enum Audience {
        /// One user.
        User = "user",
        /// Those who run the organization: `org_admin` and above.
        Administrators = "administrators",
        /// All users of the organization.
        Organization = "organization",
    }
}
