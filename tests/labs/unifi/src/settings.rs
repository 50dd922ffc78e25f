//! What a console is when it starts.

use std::time::Duration;

use crate::release::Release;

/// The two kinds of host that the application runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The vendor's own: prefixed paths, a token with CSRF, API keys.
    #[default]
    #[value(name = "unifi-os")]
    UnifiOs,
    /// The self-hosted application: no prefix, a session cookie, no API keys, no official interface.
    Classic,
}

/// How a session that is over looks on the older interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionEnd {
    /// Status 401.
    #[default]
    Status,
    /// Status 200, and `api.err.LoginRequired` in the envelope.
    Envelope,
}

/// What a console is when it starts.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host.
    pub kind: Kind,
    /// The release of the application.
    pub release: Release,
    /// A version that it tells in place of that of its release.
    pub told_version: Option<String>,
    /// Name and password of the administrator.
    pub admin: (String, String),
    /// Name and password of an account that only reads.
    pub viewer: (String, String),
    /// Keys of the administrator.
    pub api_keys: Vec<String>,
    /// The second factor that logins need, if any.
    pub second_factor: Option<String>,
    /// Whether an API key alone opens the stream of events.
    pub key_opens_events: bool,
    /// Sites; the first one has the short name `default`.
    pub sites: usize,
    /// Clients of the first site beside those that have a name.
    pub clients: usize,
    /// Whether a site has an adopted gateway.
    pub has_gateway: bool,
    /// Whether the firewall has zones; else it has the older rules.
    pub has_zones: bool,
    /// Writes after which the CSRF token changes.
    pub csrf_writes: u32,
    /// Whether reads need the CSRF token as well.
    pub csrf_on_reads: bool,
    /// How long a session lives.
    pub session: Duration,
    /// How a session that is over looks.
    pub session_end: SessionEnd,
    /// Logins within one window; more are refused until it is over. 0 is no limit.
    pub logins_max: usize,
    /// The window of logins.
    pub login_window: Duration,
    /// Whether `GET /` of the vendor's own host leads elsewhere, as newer firmware does.
    pub root_redirects: bool,
    /// How long a step of a device takes: to provision, to restart a radio. Others are multiples.
    pub step: Duration,
    /// How long it takes until a read of devices shows what was written to one.
    pub settle: Duration,
    /// How long the host is away when it restarts.
    pub boot: Duration,
    /// How long the application is not ready after the host came back.
    pub start: Duration,
    /// How often each device tells its state on the stream of events.
    pub sync: Duration,
    /// WLANs that one access point serves.
    pub wlans_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let owned = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        Self {
            kind: Kind::default(),
            release: Release::default(),
            told_version: None,
            admin: owned("admin", "heddle-lab"),
            viewer: owned("viewer", "heddle-view"),
            api_keys: vec!["lab-key-4f0c9a71d2e85b36".to_owned()],
            second_factor: None,
            key_opens_events: true,
            sites: 2,
            clients: 24,
            has_gateway: true,
            has_zones: true,
            csrf_writes: 5,
            csrf_on_reads: false,
            session: Duration::from_hours(2),
            session_end: SessionEnd::default(),
            logins_max: 10,
            login_window: Duration::from_mins(2),
            root_redirects: false,
            step: Duration::from_secs(2),
            settle: Duration::from_millis(1500),
            boot: Duration::from_secs(20),
            start: Duration::from_secs(4),
            sync: Duration::from_secs(5),
            wlans_max: 8,
        }
    }
}

impl Settings {
    /// The version that the application tells.
    pub(crate) fn version(&self) -> &str {
        self.told_version.as_deref().unwrap_or(self.release.version())
    }

    pub(crate) fn is_unifi_os(&self) -> bool {
        self.kind == Kind::UnifiOs
    }
}
