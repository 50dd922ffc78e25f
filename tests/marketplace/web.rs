//! A web server of a registry, which can answer wrongly.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, Path as At, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use heddle_marketplace::catalog::TIMESTAMP;

use super::registry::Registry;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// With the right bytes and this status.
    Status(u16),
    /// With bytes without end.
    Endless,
    /// Not at all.
    Silent,
    /// With a redirect to another path.
    Redirect,
    /// Closes the connection after half of the bytes.
    CutOff,
    /// With a few compressed bytes that become 16 MiB.
    Bomb,
    /// With a byte every half second, without end.
    Slow,
    /// With another file than the one that was asked for.
    Other,
    /// With the right bytes, and the content type of a web page.
    Page,
}

/// The web server.
#[derive(Clone)]
pub(super) struct Web {
    pub(super) url: String,
    folder: PathBuf,
    /// How it answers, and the beginning of the names for which it does so.
    mood: Arc<Mutex<(Mood, &'static str)>>,
    /// Paths of redirects that were followed.
    followed: Arc<Mutex<Vec<String>>>,
}

impl Web {
    pub(super) async fn start(registry: &Registry) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            url: format!("http://{}/plugins", listener.local_addr().unwrap()),
            folder: registry.served(),
            mood: Arc::new(Mutex::new((Mood::Well, ""))),
            followed: Arc::default(),
        };
        let router =
            Router::new().route("/plugins/{*file}", get(serve)).fallback(elsewhere).with_state(web.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the registry is the outside world, and ends with the test"
        )]
        tokio::spawn(async move { axum::serve(listener, router).await });
        web
    }

    pub(super) fn answers(&self, mood: Mood) {
        self.answers_for("", mood);
    }

    /// Answers so for files whose names begin with this, and well for others.
    pub(super) fn answers_for(&self, names: &'static str, mood: Mood) {
        *self.mood.lock().unwrap() = (mood, names);
    }

    /// Paths of redirects that were followed.
    pub(super) fn followed(&self) -> Vec<String> {
        self.followed.lock().unwrap().clone()
    }
}

async fn elsewhere(State(web): State<Web>, OriginalUri(uri): OriginalUri) -> StatusCode {
    web.followed.lock().unwrap().push(uri.to_string());
    StatusCode::NOT_FOUND
}

async fn serve(State(web): State<Web>, At(file): At<String>) -> Response {
    let (mood, names) = *web.mood.lock().unwrap();
    let mood = if file.starts_with(names) { mood } else { Mood::Well };
    let name = if mood == Mood::Other { TIMESTAMP } else { file.as_str() };
    let found = std::fs::read(web.folder.join(name));
    if found.is_err() && [Mood::Well, Mood::Other, Mood::Page].contains(&mood) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let bytes = found.unwrap_or_default();
    let chunk = |bytes: Vec<u8>| Ok::<_, std::io::Error>(bytes);
    match mood {
        Mood::Well | Mood::Other => bytes.into_response(),
        Mood::Status(status) => (StatusCode::from_u16(status).unwrap(), bytes).into_response(),
        Mood::Endless => {
            let chunks = futures::stream::repeat_with(move || chunk(vec![b'['; 64 << 10]));
            Body::from_stream(chunks).into_response()
        }
        Mood::Silent => std::future::pending().await,
        Mood::Redirect => {
            (StatusCode::FOUND, [(header::LOCATION, format!("/elsewhere/{file}"))]).into_response()
        }
        Mood::CutOff => {
            let half = futures::stream::iter([chunk(bytes[..bytes.len() / 2].to_vec())]);
            ([(header::CONTENT_LENGTH, bytes.len().to_string())], Body::from_stream(half)).into_response()
        }
        Mood::Bomb => ([(header::CONTENT_ENCODING, "gzip")], bomb()).into_response(),
        Mood::Slow => {
            let bytes = futures::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Some((chunk(vec![b' ']), ()))
            });
            Body::from_stream(bytes).into_response()
        }
        Mood::Page => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], bytes).into_response(),
    }
}

/// 16 MiB of spaces, compressed.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![b' '; 16 << 20]).unwrap();
    encoder.finish().unwrap()
}
