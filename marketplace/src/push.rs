//! Channels by which a controller says that something has to be read again, as a manifest declares them.
//!
//! A message never says what is now: the host keeps nothing of it, and reads. What may be written here is judged in
//! `push_rules`; how a channel is opened and read is the host's part.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::{Apply, Matcher, When};
use crate::plugin::{HookEncoding, HookScheme, HookSignature, HookTimestamp};
use crate::release::Span;

/// What rules call the list of devices.
pub const DEVICE: &str = "device";

/// A channel of an adapter. It has exactly one of `socket`, `stream`, `watch` and `hook`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Channel {
    /// A WebSocket, opened by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    /// An answer that does not end: server-sent events, or lines of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// A cheap GET that the host repeats, and whose answers it compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// A request that the controller sends to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookChannel>,
    /// How it is asked for, in order: the first whose condition holds counts. A hook has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// Whether there is one for the controller, or one for each of its sites.
    #[serde(default, skip_serializing_if = "ChannelPer::is_controller")]
    pub per: ChannelPer,
    /// One connection for each object that the controller lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
    /// The releases that have it; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<Span>,
    /// The answer of a controller that has no such channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<Matcher>,
    /// Milliseconds between a message and the reading that it asks for, so that messages that come together ask once:
    /// 0 to 1,000, and 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_ms: Option<u32>,
    /// Where a message of a channel of the controller names a site; without it every message is about all sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<MessageSite>,
    /// What a message means: 1 to 64 rules, with 256 values in `when` together at most. All that fit count; a message that
    /// fits none means nothing.
    pub rules: Vec<PushRule>,
}

/// A WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Socket {
    /// Seconds between two pings of the host: 5 to 120.
    pub ping_s: u32,
    /// Seconds without a sign of the controller after which the connection is ended: more than `ping-s`, 600 at most. An
    /// answer to a ping is a sign.
    pub silence_s: u32,
}

/// An answer that does not end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Stream {
    pub format: StreamFormat,
    /// Seconds without a byte of the controller after which the connection is ended: 5 to 3,600. Without it only a
    /// connection that breaks is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_s: Option<u32>,
    /// Seconds after which the host opens the next stream; it closes the old one when the new one is open: 5 to 3,600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_s: Option<u32>,
}

/// How messages stand in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFormat {
    /// Server-sent events. A message is `{"event", "data"}`, with the JSON that `data` holds.
    Sse,
    /// Each line is a message.
    JsonLines,
}

/// A GET that is repeated. The first answer is what later ones are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watch {
    /// Milliseconds between the beginnings of two requests: 1,000 to 60,000.
    pub every_ms: u32,
    /// JSON pointer to the array of the answer. An element is a message where it is new or has changed.
    pub items: String,
    /// JSON pointer in an element to what tells elements apart.
    pub key: String,
    /// JSON pointers in an element to the values that count; all others may change.
    pub of: Vec<String>,
}

/// A request that the controller sends to an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookChannel {
    pub proof: Proof,
    /// Seconds without a request after which the channel no longer counts as live: 60 to 2,592,000.
    pub quiet_s: u32,
}

/// How the host knows that a request is of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Proof {
    pub scheme: HookScheme,
    /// Where the token or the signature stands; a signature stands in a header.
    pub at: ProofAt,
    /// What the value begins with, such as `sha256=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// How the bytes of a signature are written.
    #[serde(default)]
    pub encoding: HookEncoding,
    /// What is signed: a text with `{body}` once and perhaps `{header.NAME}`. The body alone when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// The signed header that says when the request was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<HookTimestamp>,
}

/// A place of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProofAt {
    /// JSON pointer in the body.
    Json(String),
    Header(String),
}

/// A request that opens a channel: always a GET without a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Way {
    /// It always holds when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// A session of `auth`: the one that readings use.
    pub session: String,
    /// `{site}` stands for the vendor's id of the site, `{each}` for an object that `each` found.
    pub path: String,
    /// How the request carries the session, in place of the session's own `apply`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<Apply>,
}

/// Whose a channel is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelPer {
    #[default]
    Controller,
    /// One connection for each site of the vendor that is read.
    Site,
}

impl Proof {
    /// The same as of a plugin's hook, whose secret has a name. A proof in the body has an empty header.
    #[must_use]
    pub fn signature(&self) -> HookSignature {
        let header = match &self.at {
            ProofAt::Header(name) => name.clone(),
            ProofAt::Json(_) => String::new(),
        };
        HookSignature {
            scheme: self.scheme,
            secret: String::new(),
            header,
            prefix: self.prefix.clone(),
            encoding: self.encoding,
            signed: self.signed.clone(),
            timestamp: self.timestamp.clone(),
        }
    }
}

impl ChannelPer {
    /// Whether there is one for the whole controller.
    #[must_use]
    pub fn is_controller(&self) -> bool {
        *self == Self::Controller
    }
}

/// The objects that have a connection each, 16 at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Each {
    /// A GET in the same session that lists them.
    pub path: String,
    /// JSON pointer to an object, whose keys they are, or to an array of texts; empty for the whole answer.
    pub from: String,
    /// Only those whose name is like this; up to two `*` stand for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
}

/// Where a message names a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MessageSite {
    /// JSON pointer in the message.
    pub at: String,
    pub is: SiteIs,
}

/// What a text of a message says of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SiteIs {
    /// The vendor's id.
    Id,
    /// The name that people see.
    Name,
}

/// What has to be read again when a message fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PushRule {
    /// 1 to 8 JSON pointers, each to 1 to 32 accepted values; all must fit. In a text, up to two `*` stand for any text; a `*` as a segment of a
    /// pointer stands for any element of an array or object.
    pub when: BTreeMap<String, Vec<Value>>,
    /// `device`, and kinds of the model that the description fills.
    pub reads: Vec<String>,
    /// Least seconds between two readings for this rule, 1 to 3,600; the last message is read at their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_s: Option<u32>,
    /// Reads once more so many seconds later, 1 to 60: for controllers whose lists come behind their messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_s: Option<u32>,
    /// The message counts only where something differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<Differs>,
}

/// What has to differ from the last message of the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Differs {
    /// JSON pointer to what tells things apart. With a `*`, each element is a thing of its own.
    pub by: String,
    /// JSON pointers to the values that count, in the element; in the message where `by` has no `*`.
    pub of: Vec<String>,
}

/// How messages of a channel come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'c> {
    Socket(&'c Socket),
    Stream(&'c Stream),
    Watch(&'c Watch),
    Hook(&'c HookChannel),
}

impl Transport<'_> {
    /// The key of the manifest.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Socket(_) => "socket",
            Self::Stream(_) => "stream",
            Self::Watch(_) => "watch",
            Self::Hook(_) => "hook",
        }
    }
}

impl Channel {
    /// [`Self::settle_ms`] when absent.
    pub const SETTLE_MS: u32 = 100;

    /// How its messages come; `None` only of a channel that the rules refuse.
    #[must_use]
    pub fn transport(&self) -> Option<Transport<'_>> {
        let mut all = self.transports();
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// Every transport that it names.
    pub(crate) fn transports(&self) -> impl Iterator<Item = Transport<'_>> {
        let socket = self.socket.iter().map(Transport::Socket);
        let stream = self.stream.iter().map(Transport::Stream);
        let watch = self.watch.iter().map(Transport::Watch);
        socket.chain(stream).chain(watch).chain(self.hook.iter().map(Transport::Hook))
    }

    /// Everything that a message can ask to be read: `device` and kinds of the model, in order.
    #[must_use]
    pub fn reads(&self) -> BTreeSet<&str> {
        self.rules.iter().flat_map(|rule| &rule.reads).map(String::as_str).collect()
    }

    /// Milliseconds between a message and the reading that it asks for.
    #[must_use]
    pub fn settle_ms(&self) -> u32 {
        self.settle_ms.unwrap_or(Self::SETTLE_MS)
    }
}
