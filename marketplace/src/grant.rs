//! What a plugin may do, as a set that a person consents to and that versions are compared by.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::manifest::{Capabilities, Limits, Manifest};
use crate::plugin::{Action, ActionEffect, Hook, HookScheme, HttpTarget, Origin, SecretPlace, with_port};
use crate::plugin_rules::parse_origin;
use crate::words::plain;

/// The capabilities of a manifest, sorted and with defaults filled in. Equal ones have equal JSON.
///
/// The fields stand in the order of the alphabet: so they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grant {
    pub actions: Vec<ActionGrant>,
    /// Types of events that it emits.
    pub events: Vec<String>,
    /// Operations that it calls.
    pub fabric: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookGrant>,
    pub http: Vec<HttpGrant>,
    /// Bytes that it keeps in one organization; 0 without the capability.
    pub kv_bytes: u64,
    pub limits: LimitsGrant,
    /// Least seconds between two times of a timer; 0 without the capability.
    #[serde(skip_serializing_if = "is_zero")]
    pub schedule_s: u32,
    pub secrets: Vec<SecretGrant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolGrant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerGrant>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An action as it is granted: what it changes, and who may use it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ActionGrant {
    pub effect: ActionEffect,
    pub id: String,
    pub permission: Option<String>,
}

/// A trigger as it is granted: what calls it, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TriggerGrant {
    pub effect: ActionEffect,
    pub events: Vec<String>,
    pub id: String,
}

/// A tool as it is granted: who may ask it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolGrant {
    pub id: String,
    pub permission: Option<String>,
}

/// A hook as it is granted: how requests are known, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookGrant {
    pub effect: ActionEffect,
    pub name: String,
    /// How a request is known, with the secret, and the seconds that it may be old where there are some.
    pub proof: String,
}

/// What a call may use, as it is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LimitsGrant {
    pub cpu_ms: u32,
    pub memory_mib: u32,
    pub parallel: u32,
    pub request_bytes: u32,
    pub requests: u32,
}

/// A target as it is granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpGrant {
    pub methods: Vec<String>,
    pub name: String,
    pub origin: OriginGrant,
    pub paths: Vec<String>,
    pub private: bool,
}

/// Where a granted target is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OriginGrant {
    /// Scheme, host and port, the port written out.
    Fixed(String),
    /// The name of the organization's setting.
    Setting(String),
}

/// A secret as it is granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretGrant {
    pub name: String,
    pub places: Vec<SecretPlace>,
    pub target: String,
}

/// How much a person should think about an item before consenting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    High,
    Low,
}

impl Risk {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }
}

/// One thing that a plugin may do, in words. Every part of the grant is in the text of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub text: String,
    pub risk: Risk,
}

/// An item, and how much of it there is: 0 where it is there or not, a number where less of it is a part of more.
struct Part {
    /// What it is about; the amount is not in it.
    about: String,
    /// What else it is a part of.
    within: Option<String>,
    amount: u64,
    item: Item,
}

/// What another grant has more, and what it no longer has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub added: Vec<Item>,
    pub removed: Vec<Item>,
}

/// Returns the grant that a checked manifest asks for; an adapter's is empty.
#[must_use]
pub fn of(manifest: &Manifest) -> Grant {
    let actions: Vec<ActionGrant> = manifest.actions.iter().map(of_action).collect();
    let hooks: Vec<HookGrant> = manifest.hooks.iter().map(of_hook).collect();
    let tools = manifest
        .tools
        .iter()
        .map(|tool| ToolGrant { id: tool.id.clone(), permission: tool.permission.clone() });
    let triggers = manifest.triggers.iter().map(|trigger| TriggerGrant {
        effect: trigger.effect,
        events: sorted(&trigger.events),
        id: trigger.id.clone(),
    });
    Grant {
        actions: sorted(&actions),
        hooks: sorted(&hooks),
        tools: sorted(&tools.collect::<Vec<_>>()),
        triggers: sorted(&triggers.collect::<Vec<_>>()),
        limits: LimitsGrant::of(&manifest.limits),
        ..of_capabilities(&manifest.capabilities)
    }
}

/// The same of capabilities alone: nothing is said of actions, triggers, tools, hooks and limits.
#[must_use]
pub fn of_capabilities(has: &Capabilities) -> Grant {
    let secrets = has.secrets.rules().iter().map(|rule| SecretGrant {
        name: rule.name.clone(),
        places: sorted(&rule.places),
        target: rule.target.clone(),
    });
    let mut http: Vec<HttpGrant> = has.http.iter().map(of_target).collect();
    http.sort_by(|one, other| one.name.cmp(&other.name));
    Grant {
        events: sorted(has.emitted()),
        fabric: sorted(has.called()),
        http,
        kv_bytes: has.kv.as_ref().map_or(0, crate::plugin::KvCapability::bytes_max),
        schedule_s: has.schedule.as_ref().map_or(0, |schedule| schedule.min_interval_s),
        secrets: sorted(&secrets.collect::<Vec<_>>()),
        ..Grant::default()
    }
}

fn of_action(action: &Action) -> ActionGrant {
    ActionGrant { effect: action.effect, id: action.id.clone(), permission: action.permission.clone() }
}

fn of_hook(hook: &Hook) -> HookGrant {
    let secret = &hook.signature.secret;
    let proof = match (hook.signature.scheme, &hook.signature.timestamp) {
        (HookScheme::Token, _) => format!("the token '{secret}'"),
        (HookScheme::HmacSha256, None) => format!("signed by '{secret}'"),
        (HookScheme::HmacSha256, Some(time)) => format!("signed by '{secret}' within {} s", time.tolerance_s),
    };
    HookGrant { effect: hook.effect, name: hook.name.clone(), proof }
}

fn of_target(target: &HttpTarget) -> HttpGrant {
    let origin = match &target.origin {
        Origin::Setting(from) => OriginGrant::Setting(from.setting.clone()),
        Origin::Fixed(text) => OriginGrant::Fixed(
            parse_origin(text, target.private).map_or_else(|_| text.clone(), |url| with_port(&url)),
        ),
    };
    HttpGrant {
        methods: sorted(&target.methods),
        name: target.name.clone(),
        origin,
        paths: sorted(&target.paths),
        private: target.private,
    }
}

fn sorted<T: Ord + Clone>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    items.sort();
    items.dedup();
    items
}

/// Returns what `new` has beyond `old`, and the other way round: less of something adds nothing. `is_read` as in
/// [`Grant::items`].
#[must_use]
pub fn difference(old: &Grant, new: &Grant, is_read: impl Fn(&str) -> bool) -> Difference {
    let (before, after) = (old.parts(&is_read), new.parts(&is_read));
    let beyond = |parts: &[Part], others: &[Part]| {
        let has = |other: &Part, part: &Part| {
            let is_same = other.about == part.about && other.amount >= part.amount;
            is_same || part.within.as_ref() == Some(&other.about)
        };
        let is_beyond = |part: &&Part| !others.iter().any(|other| has(other, part));
        parts.iter().filter(is_beyond).map(|part| part.item.clone()).collect::<Vec<_>>()
    };
    Difference { added: beyond(&after, &before), removed: beyond(&before, &after) }
}

impl Grant {
    /// The grant as JSON: keys in the order of the alphabet, lists sorted, no space.
    #[must_use]
    pub fn canonical_json(&self) -> String {
        serde_json::to_string(self).expect("a grant has text keys only")
    }

    /// SHA-256 of [`Self::canonical_json`], lower-case hex. A person consents to it.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.canonical_json()))
    }

    /// One item for each thing that the plugin may do, those of high risk first. `is_read` says whether an operation of
    /// the Fabric is known and only reads; every other one counts as a write.
    #[must_use]
    pub fn items(&self, is_read: impl Fn(&str) -> bool) -> Vec<Item> {
        self.parts(is_read).into_iter().map(|part| part.item).collect()
    }

    fn parts(&self, is_read: impl Fn(&str) -> bool) -> Vec<Part> {
        let mut parts = Vec::new();
        self.http.iter().for_each(|target| target.parts(&mut parts));
        for secret in &self.secrets {
            for place in &secret.places {
                let (name, target) = (&secret.name, &secret.target);
                let place = in_words(place);
                let text = format!("puts the secret '{name}' into requests to '{target}': {place}");
                parts.push(Part::of(Risk::High, text));
            }
        }
        for id in &self.fabric {
            parts.push(if is_read(id) {
                Part::of(Risk::Low, format!("calls the operation '{id}', which reads"))
            } else {
                Part::of(Risk::High, format!("calls the operation '{id}', which may change something"))
            });
        }
        self.actions.iter().for_each(|action| action.parts(&mut parts));
        self.triggers.iter().for_each(|trigger| trigger.parts(&mut parts));
        self.tools.iter().for_each(|tool| parts.push(offered("tool", &tool.id, tool.permission.as_deref())));
        self.hooks.iter().for_each(|hook| hook.parts(&mut parts));
        if self.schedule_s > 0 {
            // The more often, the more it may do.
            let often = u64::from(u32::MAX - self.schedule_s);
            let text = format!("sets timers, each of which comes at most every {} s", self.schedule_s);
            parts.push(Part::amount("schedule", often, text));
        }
        for event in &self.events {
            parts.push(Part::of(Risk::Low, format!("emits events of the type '{event}'")));
        }
        if self.kv_bytes > 0 {
            let text = format!("keeps up to {} bytes for each organization", self.kv_bytes);
            parts.push(Part::amount("kv", self.kv_bytes, text));
        }
        self.limits.parts(&mut parts);
        parts.sort_by_key(|part| part.item.risk);
        parts
    }
}

impl Part {
    fn of(risk: Risk, text: String) -> Self {
        let text = plain(&text);
        Self { about: text.clone(), within: None, amount: 0, item: Item { text, risk } }
    }

    fn amount(about: &str, amount: u64, text: String) -> Self {
        let item = Item { text: plain(&text), risk: Risk::Low };
        Self { about: about.to_owned(), within: None, amount, item }
    }
}

impl ActionGrant {
    /// The users that may use the action, and what the action changes.
    fn parts(&self, parts: &mut Vec<Part>) {
        parts.push(offered("action", &self.id, self.permission.as_deref()));
        parts.extend(changes(self.effect, "action", &self.id));
    }
}

/// The users that may use an action or a tool.
fn offered(what: &str, id: &str, permission: Option<&str>) -> Part {
    let open = plain(&format!("offers the {what} '{id}' to everyone who may use the Fabric"));
    match permission {
        None => Part::of(Risk::Low, open),
        Some(permission) => {
            let text = format!("offers the {what} '{id}' to those with '{permission}'");
            Part { within: Some(open), ..Part::of(Risk::Low, text) }
        }
    }
}

/// What something of the plugin changes, where it changes something.
fn changes(effect: ActionEffect, what: &str, id: &str) -> Option<Part> {
    let does = match effect {
        ActionEffect::Read => return None,
        ActionEffect::Stage => "stages changes",
        ActionEffect::Outward => "acts at its own targets",
    };
    Some(Part::of(Risk::High, format!("{does} by the {what} '{id}'")))
}

impl TriggerGrant {
    /// What calls the trigger, and what it changes.
    fn parts(&self, parts: &mut Vec<Part>) {
        let id = &self.id;
        for event in &self.events {
            // The plugin reads these events with the rights of the user who switched it on.
            let text = format!("is told of events of the type '{event}', by the trigger '{id}'");
            parts.push(Part::of(if event.ends_with('*') { Risk::High } else { Risk::Low }, text));
        }
        parts.push(Part::of(Risk::Low, format!("runs the trigger '{id}' by itself")));
        parts.extend(changes(self.effect, "trigger", id));
    }
}

impl HookGrant {
    fn parts(&self, parts: &mut Vec<Part>) {
        let (name, proof) = (&self.name, &self.proof);
        let text = format!("is called from outside at the hook '{name}', by requests with a proof ({proof})");
        parts.push(Part::of(Risk::High, text));
        parts.extend(changes(self.effect, "hook", name));
    }
}

impl LimitsGrant {
    fn of(limits: &Limits) -> Self {
        Self {
            cpu_ms: limits.cpu_ms.unwrap_or(Limits::CPU_MS),
            memory_mib: limits.memory_mib.unwrap_or(Limits::MEMORY_MIB),
            parallel: limits.parallel.unwrap_or(Limits::PARALLEL),
            request_bytes: limits.request_bytes.unwrap_or(Limits::REQUEST_BYTES),
            requests: limits.requests.unwrap_or(Limits::REQUESTS),
        }
    }

    fn parts(&self, parts: &mut Vec<Part>) {
        let mut add = |about: &str, amount: u32, text: String| {
            if amount > 0 {
                parts.push(Part::amount(about, amount.into(), text));
            }
        };
        add("memory", self.memory_mib, format!("uses up to {} MiB of memory in a call", self.memory_mib));
        add("processor", self.cpu_ms, format!("uses up to {} ms of a processor in a call", self.cpu_ms));
        add("requests", self.requests, format!("sends up to {} requests in a call", self.requests));
        let text = format!("sends up to {} requests at once to a target", self.parallel);
        add("parallel", self.parallel, text);
        let text = format!("sends up to {} bytes in a request", self.request_bytes);
        add("request bytes", self.request_bytes, text);
    }
}

impl HttpGrant {
    fn place(&self) -> String {
        match &self.origin {
            OriginGrant::Fixed(origin) => format!("'{}' ({origin})", self.name),
            OriginGrant::Setting(setting) => {
                format!("'{}' (the address in the organization's setting '{setting}')", self.name)
            }
        }
    }

    /// Methods and paths have an item each: every method goes to every path.
    fn parts(&self, parts: &mut Vec<Part>) {
        let place = self.place();
        if self.private {
            parts.push(Part::of(Risk::High, format!("reaches {place} also in private networks")));
        }
        for method in &self.methods {
            let risk = if matches!(method.as_str(), "GET" | "HEAD") { Risk::Low } else { Risk::High };
            parts.push(Part::of(risk, format!("sends {method} requests to {place}")));
        }
        for path in &self.paths {
            let risk = if path.contains('*') { Risk::High } else { Risk::Low };
            parts.push(Part::of(risk, format!("asks {place} for {path}")));
        }
    }
}

fn in_words(place: &SecretPlace) -> String {
    match place {
        SecretPlace::Bearer => "as a bearer token".to_owned(),
        SecretPlace::BasicUsername => "as the user name of Basic authorization".to_owned(),
        SecretPlace::BasicPassword => "as the password of Basic authorization".to_owned(),
        SecretPlace::Header(name) => format!("in the header '{name}'"),
        SecretPlace::Query(name) => format!("in the query parameter '{name}'"),
        SecretPlace::Form(name) => format!("in the form field '{name}'"),
        SecretPlace::Json(pointer) => format!("in the JSON body at '{pointer}'"),
    }
}

#[cfg(test)]
mod tests;
