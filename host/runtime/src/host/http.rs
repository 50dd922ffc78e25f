//! HTTP for guests: translates, and leaves every decision to the egress engine.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use heddle_core::bounds::JsonRoom;
use heddle_core::fault::{Fault, FaultKind};
use wasmtime::component::Resource;

use super::{SecretHandle, TargetHandle};
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::http;
use crate::convert;
use crate::egress::Outbound;
use crate::egress::request::{Auth, Body, Content, Part, Place, Request, Response};
use crate::limits::SECRET_PLACES_MAX;
use crate::state::State;
use crate::trap::RefusedTooOften;

const BATCH_MAX: usize = 512;
const PARALLEL_MAX: usize = 16;

impl http::Host for State {
    async fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<TargetHandle>, types::Fault>> {
        match self.reach.open(&name) {
            Ok(outbound) => Ok(Ok(self.table.push(TargetHandle { outbound })?)),
            Err(fault) => Ok(Err(self.fault(fault)?)),
        }
    }
}

impl http::HostTarget for State {
    async fn send(
        &mut self,
        target: Resource<TargetHandle>,
        request: http::Request,
        auth: http::Auth,
    ) -> wasmtime::Result<Result<http::Response, types::Fault>> {
        let outbound = self.outgoing(&target)?;
        let auth = self.auth(auth)?;
        let answer = match taken(&outbound, request) {
            Ok(request) => outbound.send_taken(request, &auth).await,
            Err(fault) => Err(fault),
        };
        self.answer(answer)
    }

    async fn save(
        &mut self,
        target: Resource<TargetHandle>,
        request: http::Request,
        auth: http::Auth,
    ) -> wasmtime::Result<Result<http::Saved, types::Fault>> {
        let outbound = self.outgoing(&target)?;
        let auth = self.auth(auth)?;
        let answer = match taken(&outbound, request) {
            Ok(request) => outbound.save_taken(request, &auth).await,
            Err(fault) => Err(fault),
        };
        Ok(match answer {
            Ok(Response { kept: Some(file), .. }) => {
                let file = convert::to_guest_file(&file);
                self.lower("http.file", format!("{file:?}"));
                Ok(http::Saved::File(file))
            }
            other => self.answer(other)?.map(http::Saved::Answer),
        })
    }

    async fn send_all(
        &mut self,
        target: Resource<TargetHandle>,
        requests: Vec<http::Request>,
        auth: http::Auth,
        parallel: u8,
    ) -> wasmtime::Result<Vec<Result<http::Response, types::Fault>>> {
        let auth = self.auth(auth)?;
        let outbound = self.outgoing(&target)?;
        let width = usize::from(parallel).clamp(1, PARALLEL_MAX);
        let one = |request: http::Request| {
            let (outbound, auth) = (outbound.clone(), &auth);
            async move {
                let request = taken(&outbound, request)?;
                outbound.send_taken(request, auth).await
            }
        };
        let answers: Vec<_> = futures::stream::iter(requests.into_iter().take(BATCH_MAX).map(one))
            .buffered(width)
            .collect()
            .await;
        answers.into_iter().map(|answer| self.answer(answer)).collect()
    }

    async fn reset_session(&mut self, target: Resource<TargetHandle>, name: String) -> wasmtime::Result<()> {
        self.outgoing(&target)?.reset_session(&name).await;
        Ok(())
    }

    async fn session_facts(
        &mut self,
        target: Resource<TargetHandle>,
        name: String,
    ) -> wasmtime::Result<Result<Vec<(String, String)>, types::Fault>> {
        let facts = self.outgoing(&target)?.session_facts(&name).await;
        Ok(match facts {
            Ok(facts) => {
                self.lower("http.session-facts", format!("{facts:?}"));
                Ok(facts)
            }
            Err(fault) => Err(self.fault(fault)?),
        })
    }

    async fn drop(&mut self, target: Resource<TargetHandle>) -> wasmtime::Result<()> {
        self.table.delete(target)?;
        Ok(())
    }
}

impl State {
    fn outgoing(&mut self, target: &Resource<TargetHandle>) -> wasmtime::Result<Arc<Outbound>> {
        self.waits();
        Ok(Arc::clone(&self.table.get(target)?.outbound))
    }

    /// A fault for the guest. Ends the call of a plugin that was refused too often.
    pub(super) fn fault(&self, fault: Fault) -> wasmtime::Result<types::Fault> {
        if let Some(refused) = self.reach.refused_too_often() {
            return Err(RefusedTooOften(refused).into());
        }
        let fault = convert::to_guest_fault(fault);
        self.lower("fault", format!("{fault:?}"));
        Ok(fault)
    }

    fn answer(
        &self,
        answer: Result<Response, Fault>,
    ) -> wasmtime::Result<Result<http::Response, types::Fault>> {
        Ok(match answer {
            Err(fault) => Err(self.fault(fault)?),
            Ok(response) => Ok(convert::to_guest_response(response, self.tap.as_ref())),
        })
    }

    fn auth(&self, auth: http::Auth) -> wasmtime::Result<Auth> {
        let name = |secret: &Resource<SecretHandle>| self.table.get(secret).map(|handle| handle.name.clone());
        Ok(match auth {
            http::Auth::None => Auth::None,
            http::Auth::Session(session) => Auth::Session(session),
            http::Auth::Basic((user, password)) => Auth::Basic(name(&user)?, name(&password)?),
            http::Auth::Inject(places) => {
                let mut injected = Vec::new();
                // One more than a request may have, so that it is refused.
                for (place, secret) in places.iter().take(SECRET_PLACES_MAX + 1) {
                    injected.push((place_of(place), name(secret)?));
                }
                Auth::Inject(injected)
            }
        })
    }
}

fn place_of(place: &http::Place) -> Place {
    match place {
        http::Place::Bearer => Place::Bearer,
        http::Place::Header((name, prefix)) => Place::Header(name.clone(), prefix.clone()),
        http::Place::Query(name) => Place::Query(name.clone()),
        http::Place::JsonPointer(pointer) => Place::JsonPointer(pointer.clone()),
        http::Place::FormField(name) => Place::FormField(name.clone()),
    }
}

fn json_of(text: &str) -> Result<serde_json::Value, Fault> {
    JsonRoom::default().take(text.as_bytes()).map_err(|too_much| {
        Fault::new(FaultKind::Generic, format!("the request body {too_much}")).with_code("request-too-large")
    })?;
    serde_json::from_str(text)
        .map_err(|_| Fault::new(FaultKind::Invalid, "the request body is not JSON").with_code("not-json"))
}

/// Takes a request from the budget of the call, and only then looks at it.
fn taken(outbound: &Outbound, request: http::Request) -> Result<Request, Fault> {
    outbound.take_request()?;
    request_of(request)
}

fn request_of(request: http::Request) -> Result<Request, Fault> {
    let body = match request.body {
        http::Body::None => Body::None,
        http::Body::Json(text) => Body::Json(json_of(&text)?),
        http::Body::Form(fields) => Body::Form(fields),
        http::Body::Multipart(parts) => Body::Multipart(
            parts
                .into_iter()
                .map(|p| Part {
                    name: p.name,
                    filename: p.filename,
                    content_type: p.content_type,
                    content: Content::Bytes(p.content),
                })
                .collect(),
        ),
        http::Body::Bytes((kind, bytes)) => Body::Bytes(kind, bytes),
    };
    Ok(Request {
        method: convert::method(request.method),
        path: request.path,
        headers: request.headers.into_iter().map(|header| (header.name, header.value)).collect(),
        body,
        timeout: request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms))),
        max_response: request.max_response_bytes.and_then(|n| usize::try_from(n).ok()),
    })
}
