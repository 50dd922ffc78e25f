//! Notifications in words: where they go, how grave they are, whom they are for.

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
    /// Whom a notice is for.
    pub enum Audience {
        /// One user.
        User = "user",
        /// Those who run the organization: `org_admin` and above.
        Administrators = "administrators",
        /// Everybody in the organization.
        Organization = "organization",
    }
}
