//! Bodies of channels, and a channel as it is shown. Each kind has its own settings and its own secret. A secret is
//! accepted, but never shown.

use heddle_core::notification::ChannelKind;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Timestamp};
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::outgoing::URL_BYTES_MAX;
use heddle_store::Set;
use heddle_store::channels::{Channel, ChannelId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::settings::{Email, Ntfy, Webhook, check_address, read, stored};

const SECRET_BYTES_MAX: usize = 4096;
const NOT_WHOLE: &str = "must be given as a whole: the query of an old one is not kept with another";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewChannel")]
pub(super) struct NewBody {
    kind: ChannelKind,
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    label: String,
    #[serde(default = "yes")]
    is_enabled: bool,
    /// With kind `email`.
    #[serde(default, deserialize_with = "given")]
    email: Option<Email>,
    /// With kind `webhook`.
    #[serde(default, deserialize_with = "given")]
    webhook: Option<Webhook>,
    /// With kind `ntfy`.
    #[serde(default, deserialize_with = "given")]
    ntfy: Option<Ntfy>,
    /// With kinds `slack` and `teams`: the address that the service gave. At most 2048 bytes. Never shown again.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("minLength" = 1, "maxLength" = URL_BYTES_MAX))]
    webhook_url: Option<Secret>,
    /// With kind `webhook`: signs what is sent. Never shown again.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    signing_secret: Option<Secret>,
    /// With kind `ntfy`: an access token. Never shown again.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    token: Option<Secret>,
    /// Another organization than the own one; for `super_admin`.
    pub(super) organization_id: Option<OrgId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChannelUpdate")]
pub(super) struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    label: Option<String>,
    #[serde(default, deserialize_with = "given")]
    is_enabled: Option<bool>,
    /// With kind `email`.
    #[serde(default, deserialize_with = "given")]
    email: Option<Email>,
    /// With kind `webhook`.
    #[serde(default, deserialize_with = "given")]
    webhook: Option<Webhook>,
    /// With kind `ntfy`. A stored token must be given again when the server changes.
    #[serde(default, deserialize_with = "given")]
    ntfy: Option<Ntfy>,
    /// With kinds `slack` and `teams`. At most 2048 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("minLength" = 1, "maxLength" = URL_BYTES_MAX))]
    webhook_url: Option<Secret>,
    /// With kind `webhook`; `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    signing_secret: Option<Option<Secret>>,
    /// With kind `ntfy`; `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    token: Option<Option<Secret>>,
}

fn yes() -> bool {
    true
}

/// The valid contents of a body.
pub(super) struct Wanted {
    pub(super) label: Option<String>,
    pub(super) is_enabled: Option<bool>,
    pub(super) settings: Option<Value>,
    pub(super) secret: Set<Secret>,
    /// The URL of kind `webhook`, when it has a query, which is a secret.
    pub(super) url: Set<Secret>,
    pub(super) changed: Vec<&'static str>,
}

impl NewBody {
    pub(super) fn kind(&self) -> ChannelKind {
        self.kind
    }

    pub(super) fn check(self) -> Result<Wanted, Error> {
        let kind = self.kind;
        let body = UpdateBody {
            label: Some(self.label),
            is_enabled: Some(self.is_enabled),
            email: self.email,
            webhook: self.webhook,
            ntfy: self.ntfy,
            webhook_url: self.webhook_url,
            signing_secret: self.signing_secret.map(Some),
            token: self.token.map(Some),
        };
        body.check(kind, None)
    }
}

impl UpdateBody {
    pub(super) fn check(self, kind: ChannelKind, current: Option<&Channel>) -> Result<Wanted, Error> {
        let mut checks = Checks::default();
        let label = self.label.as_deref().map(|label| checks.name("label", label));
        let changed = self.changed();
        for (field, owners) in OWNERS {
            let fits = owners.contains(&kind) || !changed.contains(field);
            checks.require(fits, field, &format!("is of another kind of channel than '{kind}'"));
        }
        if current.is_none() {
            let field = needed(kind);
            checks.require(
                changed.contains(&field),
                field,
                &format!("is needed for a channel of kind '{kind}'"),
            );
        }
        let moves = match (&self.ntfy, current) {
            (Some(new), Some(current)) if kind == ChannelKind::Ntfy && current.has_secret => {
                read::<Ntfy>(current)?.server_url != new.server_url && self.token.is_none()
            }
            _ => false,
        };
        checks.require(!moves, "token", "is needed again: the stored one would now go to another server");
        let url = self.url(current, &mut checks)?;
        let settings = self.settings(kind, &mut checks);
        let secret = match kind {
            ChannelKind::Slack | ChannelKind::Teams => {
                if let Some(url) = &self.webhook_url {
                    check_address("webhook_url", url.expose(), &mut checks);
                }
                Set::from(self.webhook_url.map(Some))
            }
            ChannelKind::Webhook => secret("signing_secret", self.signing_secret, &mut checks),
            ChannelKind::Ntfy => secret("token", self.token, &mut checks),
            ChannelKind::Email => Set::Keep,
        };
        checks.done()?;
        Ok(Wanted { label, is_enabled: self.is_enabled, settings, secret, url, changed })
    }

    fn settings(&self, kind: ChannelKind, checks: &mut Checks) -> Option<Value> {
        match kind {
            ChannelKind::Email => self.email.as_ref().map(|email| {
                email.check(checks);
                stored(email)
            }),
            ChannelKind::Webhook => {
                self.webhook.as_ref().filter(|webhook| !webhook.is_shown()).map(|webhook| {
                    webhook.check(checks);
                    stored(&webhook.shown())
                })
            }
            ChannelKind::Ntfy => self.ntfy.as_ref().map(|ntfy| {
                ntfy.check(checks);
                stored(ntfy)
            }),
            ChannelKind::Slack | ChannelKind::Teams => None,
        }
    }

    /// A client that sends back the shown URL keeps its hidden query.
    fn url(&self, current: Option<&Channel>, checks: &mut Checks) -> Result<Set<Secret>, Error> {
        let Some(webhook) = &self.webhook else { return Ok(Set::Keep) };
        if webhook.is_shown() {
            let is_same = match current {
                Some(channel) if channel.kind == ChannelKind::Webhook => {
                    read::<Webhook>(channel)?.shown() == *webhook
                }
                _ => false,
            };
            checks.require(is_same, "webhook.url", NOT_WHOLE);
            return Ok(Set::Keep);
        }
        Ok(if webhook.url.contains('?') { Set::To(Secret::new(webhook.url.as_str())) } else { Set::Clear })
    }

    fn changed(&self) -> Vec<&'static str> {
        let fields = [
            ("label", self.label.is_some()),
            ("is_enabled", self.is_enabled.is_some()),
            ("email", self.email.is_some()),
            ("webhook", self.webhook.is_some()),
            ("ntfy", self.ntfy.is_some()),
            ("webhook_url", self.webhook_url.is_some()),
            ("signing_secret", self.signing_secret.is_some()),
            ("token", self.token.is_some()),
        ];
        fields.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
    }
}

/// The kinds that a field belongs to.
const OWNERS: &[(&str, &[ChannelKind])] = &[
    ("email", &[ChannelKind::Email]),
    ("webhook", &[ChannelKind::Webhook]),
    ("ntfy", &[ChannelKind::Ntfy]),
    ("webhook_url", &[ChannelKind::Slack, ChannelKind::Teams]),
    ("signing_secret", &[ChannelKind::Webhook]),
    ("token", &[ChannelKind::Ntfy]),
];

/// Returns the field that a kind requires.
fn needed(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Email => "email",
        ChannelKind::Webhook => "webhook",
        ChannelKind::Ntfy => "ntfy",
        ChannelKind::Slack | ChannelKind::Teams => "webhook_url",
    }
}

fn secret(field: &str, given: Option<Option<Secret>>, checks: &mut Checks) -> Set<Secret> {
    let set = Set::from(given);
    if let Set::To(secret) = &set {
        let text = secret.expose();
        let fits = (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        let message = format!("must have 1 to {SECRET_BYTES_MAX} visible ASCII characters");
        checks.require(fits, field, &message);
    }
    set
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Channel")]
pub(crate) struct View {
    id: ChannelId,
    #[serde(skip)]
    revision: i64,
    organization_id: OrgId,
    kind: ChannelKind,
    label: String,
    is_enabled: bool,
    /// With kind `email`.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<Email>,
    /// With kind `webhook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Webhook>,
    /// With kind `ntfy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ntfy: Option<Ntfy>,
    /// Whether an address that is a secret, a signing secret or a token is stored.
    has_secret: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

heddle_store::revised!(View);

impl View {
    pub(super) fn of(channel: Channel) -> Result<Self, Error> {
        let (mut email, mut webhook, mut ntfy) = (None, None, None);
        match channel.kind {
            ChannelKind::Email => email = Some(read(&channel)?),
            ChannelKind::Webhook => webhook = Some(read::<Webhook>(&channel)?.shown()),
            ChannelKind::Ntfy => ntfy = Some(read(&channel)?),
            ChannelKind::Slack | ChannelKind::Teams => {}
        }
        Ok(Self {
            id: channel.id,
            revision: channel.revision,
            organization_id: channel.org_id,
            kind: channel.kind,
            label: channel.label,
            is_enabled: channel.is_enabled,
            email,
            webhook,
            ntfy,
            has_secret: channel.has_secret,
            created_at: channel.created_at,
            updated_at: channel.updated_at,
            deleted_at: channel.deleted_at,
        })
    }
}

/// Settings of kinds that have none.
pub(super) fn no_settings() -> Value {
    json!({})
}
