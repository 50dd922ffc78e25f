//! Bodies that are too large, and the rest of a body that the handler did not read.

use std::collections::HashMap;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use futures::{Stream, StreamExt as _};
use tokio::time::Sleep;

use crate::http::error::Error;
use crate::http::prefix::PREFIX;
use crate::http::routes::{Mark, Routes};
use crate::task::Tasks;

/// Largest request body, in bytes, of a route that declares no other.
pub(super) const BODY_BYTES_MAX: usize = 1_048_576;

/// Most bytes that are read of an unwanted body.
const UNWANTED_BYTES_MAX: usize = 64 * 1_048_576;
/// Bytes of a body that is read while it comes for which the client has the time of a whole body elsewhere.
const PACE_BYTES: usize = 1_048_576;
/// How long an unwanted body is read.
const UNWANTED_LIMIT: Duration = Duration::from_secs(30);

/// Largest bodies of routes that declare one, by path and method, and whether they are read while they come.
pub(super) struct Sizes(HashMap<String, (Method, usize, bool)>);

impl Sizes {
    pub(super) fn of(table: &Routes) -> Self {
        let declared = table.iter().filter_map(|route| {
            let (_, max) = route.doc.file?;
            let declared = (route.method.clone(), max, route.doc.has(Mark::Streams));
            Some((format!("{PREFIX}{}", route.path), declared))
        });
        Self(declared.collect())
    }

    /// Most bytes that the body of this request may have.
    pub(super) fn max(&self, request: &Request) -> usize {
        self.of_request(request).map_or(BODY_BYTES_MAX, |(max, _)| max)
    }

    /// Bytes for which the body of this request gets its time; `None` where that is for all of it.
    pub(super) fn pace(&self, request: &Request) -> Option<usize> {
        self.of_request(request).and_then(|(_, streams)| streams.then_some(PACE_BYTES))
    }

    fn of_request(&self, request: &Request) -> Option<(usize, bool)> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let (method, max, streams) = self.0.get(path)?;
        (method == request.method()).then_some((*max, *streams))
    }
}

/// 413, in the words of the interface.
pub(super) fn too_large(max: usize) -> Error {
    Error::Bare {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        detail: format!("request body exceeds {max}-byte limit"),
    }
}

/// Refuses a body whose declared length is too large. A body without a declared length is measured while it is read.
pub(super) fn check_length(headers: &HeaderMap, max: usize) -> Result<(), Error> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.map(str::parse::<u64>) {
        Some(Ok(length)) if length > max as u64 => Err(too_large(max)),
        _ => Ok(()),
    }
}

/// Lets the rest of the body be read after its reader has dropped it.
///
/// Closing a connection with unread input resets it. A client that sends everything before it reads would then lose the
/// answer. So the rest is read and discarded while the answer is in flight.
///
/// The body must be complete within `limit`, counted from the moment at which the reader first waits for it; with a
/// `pace`, so many bytes of it.
pub(super) fn read_to_its_end(
    request: Request,
    tasks: &Tasks,
    limit: Duration,
    pace: Option<usize>,
) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let waits = request
        .headers()
        .get(header::EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    request.map(|body| {
        let rest = Some(body.into_data_stream());
        let tasks = tasks.clone();
        Body::from_stream(Unwanted { rest, is_invited: !waits, limit, pace, came: 0, deadline: None, tasks })
    })
}

/// Why the rest of a body is not waited for.
#[derive(Debug, thiserror::Error)]
#[error("request body did not arrive within {} s", .0.as_secs())]
pub(super) struct TooSlow(Duration);

impl TooSlow {
    /// Finds it among the causes of a refused body.
    pub(super) fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |error| error.source()).find_map(|cause| cause.downcast_ref())
    }
}

struct Unwanted {
    /// `None` after the end.
    rest: Option<BodyDataStream>,
    /// The client does not wait to be asked for its body, or was asked.
    is_invited: bool,
    limit: Duration,
    /// Bytes after which the time begins anew.
    pace: Option<usize>,
    /// Bytes since it began.
    came: usize,
    /// Set when the reader first waits for a byte.
    deadline: Option<Pin<Box<Sleep>>>,
    tasks: Tasks,
}

impl Stream for Unwanted {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.is_invited = true;
        let this = &mut *self;
        let Some(rest) = &mut this.rest else { return Poll::Ready(None) };
        let Poll::Ready(item) = rest.poll_next_unpin(context) else {
            let limit = this.limit;
            let deadline = this.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            ready!(deadline.as_mut().poll(context));
            // The rest is not read: that would take as long again.
            this.rest = None;
            return Poll::Ready(Some(Err(axum::Error::new(TooSlow(limit)))));
        };
        match &item {
            Some(Ok(bytes)) => this.count(bytes.len()),
            _ => this.rest = None,
        }
        Poll::Ready(item)
    }
}

impl Unwanted {
    fn count(&mut self, bytes: usize) {
        self.came += bytes;
        if self.pace.is_some_and(|pace| self.came >= pace) {
            self.came = 0;
            self.deadline = None;
        }
    }
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        if let Some(rest) = self.rest.take()
            && self.is_invited
            && is_running
        {
            let stop = self.tasks.stopping();
            self.tasks.spawn("http.unwanted", async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = tokio::time::timeout(UNWANTED_LIMIT, discard(rest)) => {}
                }
            });
        }
    }
}

async fn discard(mut rest: BodyDataStream) {
    let mut bytes = 0;
    while let Some(Ok(chunk)) = rest.next().await {
        bytes += chunk.len();
        if bytes > UNWANTED_BYTES_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(length: Option<&'static str>, is_accepted: bool) {
        let value = length.map(|text| (header::CONTENT_LENGTH, HeaderValue::from_static(text)));
        let headers = value.into_iter().collect();
        assert_eq!(check_length(&headers, BODY_BYTES_MAX).is_ok(), is_accepted, "{length:?}");
    }

    #[test]
    fn a_body_may_have_so_many_bytes_and_not_one_more() {
        check(None, true);
        check(Some("0"), true);
        check(Some("1048576"), true);
        check(Some("1048577"), false);
        check(Some("18446744073709551615"), false);
    }
}
