//! An answer that is kept as a file: its bytes go to the host piece by piece, and never to the component.

use std::time::{Duration, Instant};

use heddle_core::fault::{Fault, FaultKind};

use super::CONTROLLER;
use super::connect::Route;
use super::held::Room;
use super::wire::{self, Answer, Outgoing};
use crate::api::{FileHead, FileSink, KeptFile};
use crate::limits::{FILE_BYTES_PER_SEC, FILE_SILENCE_MAX, FILE_START_MAX};

/// Sends a read, and gives the body of a good answer to the sink. An answer that is no file is read as any other.
pub(super) async fn exchange(
    route: &Route,
    outgoing: Outgoing,
    timeout: Duration,
    (limit, room): (usize, &Room),
    sink: &dyn FileSink,
) -> Result<Answer, Fault> {
    let request = wire::build(route, outgoing)?;
    let started = Instant::now();
    let patience = timeout.min(FILE_START_MAX);
    let sent = async { request.send().await.map_err(|error| wire::fault_of(&error, false, CONTROLLER)) };
    let response = in_time(patience, sent).await?;
    if !is_file(&response, sink) {
        return in_time(patience, wire::read(response, started, (limit, room), false, CONTROLLER)).await;
    }
    wire::refuse_coding(&response, false)?;
    if !tells_its_end(&response) {
        let message = "the controller does not say how long the file is: one that is cut would look whole";
        return Err(Fault::new(FaultKind::Generic, message).with_code("file-without-end"));
    }
    let mut answer = wire::head(&response, started);
    answer.kept = Some(keep(response, (started, timeout), sink).await?);
    answer.elapsed = started.elapsed();
    Ok(answer)
}

/// Whether a body that is cut can be told from a whole one.
fn tells_its_end(response: &reqwest::Response) -> bool {
    response.version() >= http::Version::HTTP_2
        || response.content_length().is_some()
        || response.headers().contains_key(http::header::TRANSFER_ENCODING)
}

/// Whether the body is the file. The status must be 200: 206 is a part of a file. JSON is what devices answer when they have
/// no file, unless the sink takes it.
fn is_file(response: &reqwest::Response, sink: &dyn FileSink) -> bool {
    let kind = media_type(response);
    let is_json = kind.is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    response.status() == http::StatusCode::OK && (sink.takes_json() || !is_json)
}

async fn keep(
    mut response: reqwest::Response,
    (started, most): (Instant, Duration),
    sink: &dyn FileSink,
) -> Result<KeptFile, Fault> {
    let content_type = media_type(&response);
    let head = FileHead {
        content_type: content_type.clone(),
        name: told_name(&response),
        size_bytes: response.content_length(),
    };
    sink.begin(head).await?;
    let mut came: u64 = 0;
    loop {
        // A device that is slow all the time does not hold its place for longer than the size asks for.
        let allowed = FILE_START_MAX + Duration::from_secs(came / FILE_BYTES_PER_SEC);
        let left = allowed.min(most).saturating_sub(started.elapsed()).min(FILE_SILENCE_MAX);
        let next =
            async { response.chunk().await.map_err(|error| wire::fault_of(&error, false, CONTROLLER)) };
        let Some(bytes) = in_time(left, next).await? else { break };
        came += bytes.len() as u64;
        sink.take(bytes).await?;
    }
    let (size_bytes, sha256) = sink.end().await?;
    Ok(KeptFile { size_bytes, sha256, content_type })
}

async fn in_time<T>(most: Duration, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(most, work).await.unwrap_or_else(|_| {
        Err(Fault::new(FaultKind::Timeout, "the controller gives the file too slowly, or not at all"))
    })
}

/// The media type of an answer, in lower case and without parameters.
fn media_type(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(http::header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!kind.is_empty()).then_some(kind)
}

/// What the device calls the file: the plain name of `Content-Disposition`.
fn told_name(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(http::header::CONTENT_DISPOSITION)?.to_str().ok()?;
    name_in(value)
}

fn name_in(disposition: &str) -> Option<String> {
    let part = |part: &str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("filename").then(|| value.trim().trim_matches('"').to_owned())
    };
    disposition.split(';').skip(1).find_map(part).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_name_of_a_disposition_is_found() {
        for (text, name) in [
            ("attachment; filename=\"config.xml\"", Some("config.xml")),
            ("attachment;FileName=a.tar.gz; filename*=UTF-8''b", Some("a.tar.gz")),
            ("attachment", None),
            ("attachment; filename=\"\"", None),
        ] {
            assert_eq!(name_in(text).as_deref(), name, "{text}");
        }
    }
}
