//! Sends what passed every check, in a session or with the credential, and takes out of the answer what a guest must not see.

use std::sync::Arc;

use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{CaptureFrom, Session};

use super::references::Content;
use super::request::{Auth, Response};
use super::session::Live;
use super::wire::Outgoing;
use super::{
    Cleared, Outbound, Read, Side, budget, credentials, declared, headers, kept, references, scrub, session,
    wire,
};
use crate::api::{Credential, SecretBook};

impl Outbound {
    pub(super) async fn exchange(&self, cleared: Cleared, auth: &Auth) -> Result<Response, Fault> {
        if let Auth::Session(name) = auth {
            self.exchange_in_session(cleared, name).await
        } else {
            // Also without a secret to place: the answer may repeat what an earlier request sent.
            let credential = match (self.credential().await, auth, &self.side) {
                (Ok(credential), ..) => credential,
                // Only what this call has read can be in the answer, and that is still known.
                (Err(_), Auth::None, Side::Controller) => Credential::default(),
                (Err(fault), ..) => return Err(fault),
            };
            if let Side::Plugin(_) = &self.side {
                declared::check_given(auth, &credential)?;
            }
            let mut outgoing = Outgoing::of(&cleared.request);
            let most = self.facts.bounds.request_bytes;
            credentials::check_room(&outgoing, auth, &credential, most)?;
            credentials::place(&mut outgoing, auth, &credential)?;
            if !matches!(auth, Auth::None) {
                credentials::check_filled(&outgoing, most)?;
            }
            let secrets = cleared.and(self.ledger().used_with(self.facts.hidden(&credential)));
            let answer = self.hand_over(&cleared, outgoing).await?;
            let read = self.read(answer, None, cleared.is_write).await?;
            self.present(read, secrets, None).await
        }
    }

    /// Sends in a session, and keeps what the answer changes of it.
    async fn ask(&self, cleared: &Cleared, name: &str, session: &Live) -> Result<Read, Fault> {
        let declared = self.declared(name)?;
        let answer = self.hand_over(cleared, session.apply(&cleared.request, declared)?).await?;
        session.keep_cookies(declared, &answer);
        let read = self.read(answer, Some(name), cleared.is_write).await?;
        session.replace(&read.replacing);
        Ok(read)
    }

    async fn exchange_in_session(&self, cleared: Cleared, name: &str) -> Result<Response, Fault> {
        let session = self.session(name, cleared.follows).await?;
        let declared = self.declared(name)?;
        let read = self.ask(&cleared, name, &session).await?;
        let verdict = read.verdict;
        if verdict == session::Expiry::Alive {
            return self.present(read, cleared.and(session.secrets()), Some(name)).await;
        }
        if cleared.follows {
            return Err(Fault::new(
                FaultKind::Authentication,
                "the session ended after a call of the plan was sent; it is not opened again in the same stage",
            )
            .with_code("session-lost")
            .with_effect(Effect::Possible));
        }
        let repeatable =
            !cleared.is_write || (declared.expired_before_effect && verdict == session::Expiry::Expired);
        if !repeatable || !self.ledger().renewed.insert(name.to_owned()) {
            // A right that is missing looks the same; the component must tell.
            return self.present(read, cleared.and(session.secrets()), Some(name)).await;
        }
        drop(read);
        if cleared.is_write {
            // The refused write was not carried out: the manifest says so.
            self.returned();
        }
        let fresh = self.replace_session(name, &session).await?;
        let read = self.ask(&cleared, name, &fresh).await?;
        self.present(read, cleared.and(fresh.secrets()), Some(name)).await
    }

    /// Sends, and keeps the books of what left.
    async fn hand_over(&self, cleared: &Cleared, outgoing: Outgoing) -> Result<wire::Answer, Fault> {
        let timeout = budget::time_left(self.deadline, Some(cleared.timeout))?;
        let write = cleared.is_write;
        if write {
            // Until the answer is there: the call may be cancelled meanwhile.
            self.ledger().left += 1;
        }
        let room = (cleared.limit, &self.account.room);
        let answer = match &cleared.sink {
            Some(sink) => kept::exchange(&cleared.client, outgoing, timeout, room, sink.as_ref()).await,
            None => wire::exchange(&cleared.client, outgoing, timeout, room, write).await,
        };
        if write && answer.as_ref().is_err_and(|fault| fault.effect == Effect::None) {
            self.returned();
        }
        answer
    }

    /// A request that was counted as having left did not arrive, or was not carried out.
    fn returned(&self) {
        let mut ledger = self.ledger();
        ledger.left = ledger.left.saturating_sub(1);
    }

    /// Parses an answer, where anything asks what is in it, and sees whether it says that the session is gone.
    async fn read(&self, answer: wire::Answer, session: Option<&str>, write: bool) -> Result<Read, Fault> {
        let (bytes, facts, session) =
            (answer.body.len(), Arc::clone(&self.facts), session.map(str::to_owned));
        let read = move || {
            let session = session.and_then(|name| facts.manifest.auth.get(&name));
            let asks = |session: &Session| {
                session.expired.iter().any(|matcher| !matcher.json.is_empty())
                    || session.refresh.iter().any(|refresh| matches!(refresh.from, CaptureFrom::Json(_)))
            };
            let content = if session.is_some_and(asks) || !facts.secret_fields.is_empty() {
                Content::of(&answer.body)
            } else {
                Ok(Content::Unread)
            };
            let body = content.as_ref().ok().and_then(Content::json);
            let verdict = session
                .map_or(session::Expiry::Alive, |session| session::expired(session, &answer, body, write));
            let replacing = session
                .map(|session| session::replacing(&session.refresh, &answer, body))
                .unwrap_or_default();
            Ok(Read { answer, content, verdict, replacing })
        };
        self.apart(bytes, read).await
    }

    /// Takes out of an answer what the guest must not see; `session` names the session that it came in.
    async fn present(
        &self,
        read: Read,
        mut secrets: Vec<Secret>,
        session: Option<&str>,
    ) -> Result<Response, Fault> {
        let key = self.egress.vault.reference_key(self.target.controller_id);
        let (bytes, facts) = (read.answer.body.len(), Arc::clone(&self.facts));
        let (target, session) = (self.shown_target(), session.map(str::to_owned));
        let present = move || {
            let Read { answer, content, replacing, .. } = read;
            // Another answer may have replaced them again meanwhile.
            secrets.extend(replacing.into_iter().map(|(_, value)| value));
            let session = session.and_then(|name| facts.manifest.auth.get(&name));
            let kind = answer.header("content-type").map(str::to_owned);
            let mut seen = SecretBook::default();
            let body = references::replace(
                answer.body,
                content?,
                (answer.status, kind.as_deref()),
                &facts.secret_fields,
                &key,
                &mut seen,
            )?;
            let mut response = Response {
                status: answer.status,
                reason: answer.reason,
                headers: answer.headers,
                body,
                elapsed: answer.elapsed,
                held: answer.held,
                kept: answer.kept,
            };
            response.headers.retain(|(name, _)| headers::reaches_guest(name, session));
            let echoes = scrub::response(&mut response, &secrets);
            if echoes > 0 {
                tracing::warn!(target, echoes, "a secret was sent back; it was taken out of the answer");
            }
            Ok((response, seen))
        };
        let (response, seen) = self.apart(bytes, present).await?;
        self.ledger().seen.entries.extend(seen.entries);
        Ok(response)
    }
}
