//! The requests of a channel: each is a GET in the session of the readings, through every check of a component's read.
//!
//! A session that is gone is opened anew once. The turn at the controller ends with the answer's head: what stays open
//! afterwards takes none from readings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::random_bytes;
use heddle_marketplace::manifest::{Matcher, Session};
use heddle_marketplace::push::{Channel, ChannelPer, Transport, Way};
use http::header::{self, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Wanted, beginning, opens, parse};
use super::ended::Ended;
use super::limits::{ANSWER_BYTES_MAX, OPENING_MAX};
use super::places::Taken;
use super::told::Place;
use crate::api::{Target, Urgency};
use crate::egress::phase::{self, Phase};
use crate::egress::request::{Auth, Request, Response};
use crate::egress::session::{self, Expiry, Live};
use crate::egress::wire::{self, Answer, Outgoing};
use crate::egress::witness::Exchange;
use crate::egress::{CONTROLLER, Egress, Facts, Outbound, body, budget, headers, path};

/// Opens one channel at one controller, as often as it takes.
pub(super) struct Opener {
    pub(super) egress: Arc<Egress>,
    pub(super) facts: Arc<Facts>,
    pub(super) target: Target,
    name: String,
    pub(super) place: Place,
}

/// A good answer.
pub(super) enum Got {
    Open(reqwest::Response),
    Document(Value),
}

/// What an answer says.
enum Said {
    Good(Got),
    /// The session is gone; what it means where that was a new one.
    Gone(Ended),
    Ended(Ended),
}

impl Opener {
    /// # Errors
    /// The manifest has no channel of this name that is opened for such a place.
    pub(super) fn new(
        (egress, facts): (Arc<Egress>, Arc<Facts>),
        target: Target,
        name: &str,
        place: Place,
    ) -> Result<Self, Ended> {
        let undeclared = || Ended::Undeclared(name.chars().take(60).collect());
        let channel = facts.manifest.push.get(name).ok_or_else(undeclared)?;
        let is_opened = channel.transport().is_some_and(|of| !matches!(of, Transport::Hook(_)));
        let is_for_site = channel.per == ChannelPer::Site;
        if !is_opened || is_for_site != matches!(place, Place::Site(_)) {
            return Err(undeclared());
        }
        Ok(Self { egress, facts, target, name: name.to_owned(), place })
    }

    pub(super) fn channel(&self) -> &Channel {
        // It was there when this was made, and the manifest does not change.
        &self.facts.manifest.push[&self.name]
    }

    /// Takes the place of one connection.
    pub(super) fn take_place(&self) -> Result<Taken, Ended> {
        self.egress.channels.take(self.target.org_id, self.target.controller_id)
    }

    /// Waits for a turn to open the channel.
    pub(super) async fn turn(&self) -> Result<[OwnedSemaphorePermit; 2], Ended> {
        self.egress.channels.opening(self.target.org_id).await
    }

    /// The way that is for what the controller has.
    pub(super) async fn way(&self) -> Result<&Way, Ended> {
        let ways = &self.channel().ways;
        let asks = |way: &Way| way.when.as_ref().is_some_and(|when| when.secret.is_some());
        let credential =
            if ways.iter().any(asks) { self.outbound().credential().await?.fields } else { Vec::new() };
        let holds = |way: &&Way| {
            way.when.as_ref().is_none_or(|when| session::when_holds(when, &credential, &self.target.settings))
        };
        ways.iter().find(holds).ok_or(Ended::NoWay)
    }

    /// A path with what its placeholders stand for, each one part of a path.
    pub(super) fn path(&self, declared: &str, each: Option<&str>) -> String {
        let part = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let site = match &self.place {
            Place::Site(id) => part(id),
            Place::Controller => String::new(),
        };
        // What is filled in is encoded, so it is no placeholder.
        declared.replace("{site}", &site).replace("{each}", &part(each.unwrap_or_default()))
    }

    /// Asks once, and once more with a new session where the old one is gone: both within [`OPENING_MAX`].
    pub(super) async fn ask(&self, way: &Way, wanted: Wanted, path: &str) -> Result<Got, Ended> {
        let outbound = self.outbound();
        let mut request = Request::get(path);
        let accept = match wanted {
            Wanted::Events => Some("text/event-stream"),
            Wanted::Document => Some("application/json"),
            Wanted::Upgrade | Wanted::Lines => None,
        };
        request.headers.extend(accept.map(|kind| ("accept".to_owned(), kind.as_bytes().to_vec())));
        let shown =
            self.egress.witness.get().filter(|_| wanted != Wanted::Document).map(|_| Exchange::of(&request));
        let work = self.asked(&outbound, way, wanted, &request);
        let said = tokio::time::timeout(OPENING_MAX, work).await.unwrap_or_else(|_| Err(Ended::late()));
        if let Some(shown) = shown {
            outbound.show(Some(shown), &witnessed(&said));
        }
        said
    }

    async fn asked(
        &self,
        outbound: &Outbound,
        way: &Way,
        wanted: Wanted,
        request: &Request,
    ) -> Result<Got, Ended> {
        let bounds = &self.facts.bounds;
        let lane = self.egress.lanes.lane(&self.target, bounds.parallel);
        let _turn = lane.enter(budget::time_left(outbound.deadline, None)?, Urgency::Ordinary).await?;
        phase::check(Phase::Read, &self.facts.manifest.reads, request)?;
        path::check(&request.path)?;
        headers::check(&request.headers, &self.facts.manifest, &Auth::Session(way.session.clone()))?;
        body::check(request, bounds.request_bytes)?;
        let declared = outbound.declared(&way.session)?;
        let mut session = None;
        loop {
            let route = outbound.route().await?;
            let time = budget::time_left(outbound.deadline, None)?;
            let _paced = lane.pace(self.facts.manifest.pace.as_ref(), false, time).await?;
            let is_second = session.is_some();
            let live = match &session {
                None => outbound.session(&way.session, false).await?,
                Some(old) => outbound.replace_session(&way.session, old).await?,
            };
            let (outgoing, key) = outgoing(way, wanted, request, (declared, &live))?;
            let started = Instant::now();
            let time = budget::time_left(outbound.deadline, None)?;
            let sent = tokio::time::timeout(time, wire::build(&route, outgoing)?.send()).await;
            let response = sent
                .map_err(|_| Fault::new(FaultKind::Timeout, "the controller gave no answer in time"))?
                .map_err(|error| wire::fault_of(&error, false, CONTROLLER))?;
            let said = match wanted {
                Wanted::Document => self.document(outbound, (declared, &live), response, started).await?,
                _ => self.head((declared, &live), (wanted, &key), response, started).await,
            };
            match said {
                Said::Good(got) => return Ok(got),
                Said::Ended(ended) => return Err(ended),
                Said::Gone(_) if !is_second && !declared.login.is_empty() => session = Some(live),
                Said::Gone(ended) => return Err(ended),
            }
        }
    }

    /// Judges the answer to a request that opens something.
    async fn head(
        &self,
        (declared, live): (&Session, &Live),
        (wanted, key): (Wanted, &str),
        response: reqwest::Response,
        started: Instant,
    ) -> Said {
        let mut head = wire::head(&response, started);
        keep(declared, live, &head, None);
        if opens(wanted, key, &response) && !(wanted == Wanted::Lines && self.is_refused(declared, &head)) {
            return Said::Good(Got::Open(response));
        }
        head.body = beginning(response).await;
        let body = session::json(&head);
        self.refusal(declared, &head, body.as_ref())
    }

    /// Whether an answer whose lines would be messages says by its head that it is none.
    fn is_refused(&self, declared: &Session, head: &Answer) -> bool {
        let by_head = |matcher: &&Matcher| matcher.json.is_empty() && matcher.empty.is_none();
        let mut matchers = declared.expired.iter().chain(&self.channel().unsupported).filter(by_head);
        matchers.any(|matcher| session::fits(matcher, head, None))
    }

    /// Reads and judges a whole answer.
    async fn document(
        &self,
        outbound: &Outbound,
        (declared, live): (&Session, &Live),
        response: reqwest::Response,
        started: Instant,
    ) -> Result<Said, Ended> {
        let time = budget::time_left(outbound.deadline, None)?;
        let read =
            wire::read(response, started, (ANSWER_BYTES_MAX, &outbound.account.room), false, CONTROLLER);
        let mut answer = tokio::time::timeout(time, read)
            .await
            .map_err(|_| Fault::new(FaultKind::Timeout, "the controller gave no answer in time"))??;
        let bytes = std::mem::take(&mut answer.body);
        let size = bytes.len();
        let parsed = outbound.apart(size, move || Ok((parse(&bytes), bytes)));
        let body;
        (body, answer.body) = parsed.await?;
        keep(declared, live, &answer, body.as_ref());
        let is_expired = session::expired(declared, &answer, body.as_ref(), false) != Expiry::Alive;
        let is_good = answer.status == 200 && !is_expired && !self.is_unsupported(&answer, body.as_ref());
        match body {
            Some(body) if is_good => Ok(Said::Good(Got::Document(body))),
            body => Ok(self.refusal(declared, &answer, body.as_ref())),
        }
    }

    fn is_unsupported(&self, answer: &Answer, body: Option<&Value>) -> bool {
        self.channel().unsupported.as_ref().is_some_and(|matcher| session::fits(matcher, answer, body))
    }

    /// What an answer says that does not open the channel.
    fn refusal(&self, declared: &Session, answer: &Answer, body: Option<&Value>) -> Said {
        let status = answer.status;
        let is_gone = status == 401 || session::expired(declared, answer, body, false) != Expiry::Alive;
        let ended = match status {
            _ if self.is_unsupported(answer, body) => Ended::Unsupported { status },
            403 => refused(status),
            _ if is_gone => refused(status),
            101 | 200 => Ended::NotThat,
            _ => Ended::Unexpected { status },
        };
        if is_gone { Said::Gone(ended) } else { Said::Ended(ended) }
    }

    fn outbound(&self) -> Outbound {
        let deadline = Instant::now() + OPENING_MAX;
        let (egress, facts) = (Arc::clone(&self.egress), Arc::clone(&self.facts));
        Outbound::new(egress, facts, self.target.clone(), Phase::Read, deadline, Urgency::Ordinary)
    }
}

/// The request with everything in it, and the key that an answer to an upgrade proves to have read.
fn outgoing(
    way: &Way,
    wanted: Wanted,
    request: &Request,
    (declared, live): (&Session, &Live),
) -> Result<(Outgoing, String), Ended> {
    let places = if way.apply.is_empty() { &declared.apply } else { &way.apply };
    let mut outgoing = live.apply_as(request, declared, places)?;
    let key = STANDARD.encode(random_bytes::<16>().as_slice());
    let mut put = |name: HeaderName, value: &str| -> Result<(), Ended> {
        let value = HeaderValue::from_str(value).map_err(|_| Ended::NotThat)?;
        outgoing.headers.push((name, value));
        Ok(())
    };
    match wanted {
        Wanted::Upgrade => {
            put(header::CONNECTION, "Upgrade")?;
            put(header::UPGRADE, "websocket")?;
            put(header::SEC_WEBSOCKET_VERSION, "13")?;
            put(header::SEC_WEBSOCKET_KEY, &key)?;
        }
        // What is packed comes when the controller has a block full.
        Wanted::Events | Wanted::Lines => put(header::ACCEPT_ENCODING, "identity")?,
        Wanted::Document => {}
    }
    Ok((outgoing, key))
}

fn refused(status: u16) -> Ended {
    Ended::Refused(format!("the controller refuses the channel to this credential (status {status})"))
}

/// Takes over what an answer changes of the session.
fn keep(declared: &Session, live: &Live, answer: &Answer, body: Option<&Value>) {
    live.keep_cookies(declared, answer);
    live.replace(&session::replacing(&declared.refresh, answer, body));
}

/// What the tool that records sees of an opening: that it worked, or why it did not.
fn witnessed(said: &Result<Got, Ended>) -> Result<Response, Fault> {
    match said {
        Ok(Got::Open(response)) => Ok(Response {
            status: response.status().as_u16(),
            reason: None,
            headers: Vec::new(),
            body: Vec::new(),
            elapsed: Duration::ZERO,
            held: crate::egress::held::Held::default(),
            kept: None,
        }),
        Ok(Got::Document(_)) => Err(Fault::new(FaultKind::Generic, "an answer that is compared")),
        Err(ended) => Err(Fault::new(FaultKind::Connection, ended.to_string())),
    }
}
