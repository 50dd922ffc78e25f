//! Files that reviewed calls send.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use heddle_core::change::NativeCall;
use heddle_core::file::{SentFile, SentPart};
use hyper::body::Bytes;
use serde_json::json;

use super::exchange_tests::{filling, lab, reviewed};
use super::references;
use crate::api::{FileBook, FileContent, FileStream, Filling, SecretBook};
use crate::egress::phase::Phase;

const PIECES: usize = 20;
const PIECE: usize = 64 << 10;

fn file() -> SentFile {
    SentFile {
        sha256: "a".repeat(64),
        name: "x \"1\".iso".to_owned(),
        content_type: "application/x-iso".to_owned(),
        size_bytes: (PIECES * PIECE) as u64,
    }
}

fn call(change: impl FnOnce(&mut NativeCall)) -> NativeCall {
    let mut call = reviewed("set", None);
    (call.path, call.body) = ("/upload".to_owned(), None);
    change(&mut call);
    call
}

/// What fills a call whose file has these pieces.
fn with(open: impl Fn() -> FileStream + Send + Sync + 'static) -> Filling {
    let content = FileContent { size_bytes: file().size_bytes, open: Arc::new(open) };
    let entries = [(file().sha256, content)].into();
    Filling { files: Arc::new(FileBook { entries }), ..filling() }
}

fn whole() -> FileStream {
    stream::iter((0..PIECES).map(|_| Ok(Bytes::from(vec![b'x'; PIECE])))).boxed()
}

#[tokio::test]
async fn a_file_is_streamed_with_its_length() {
    let lab = lab().await;
    let sent = call(|call| call.file = Some(file()));
    lab.call(Phase::Write).write(&sent, &with(whole), false).await.unwrap();
    let seen = lab.device.writes.lock().unwrap()[0].clone();
    assert_eq!(seen["length"], file().size_bytes.to_string());
    assert_eq!((&seen["type"], &seen["bytes"]), (&json!("application/x-iso"), &json!(file().size_bytes)));
}

#[tokio::test]
async fn a_form_has_its_parts_in_order_and_secrets_in_its_texts() {
    let lab = lab().await;
    let secret = references::reference(&[1; 32], "geheim");
    let part = |name: &str, text| SentPart { name: name.to_owned(), text, file: None };
    let sent = call(|call| {
        let file = SentPart { name: "f".to_owned(), text: None, file: Some(file()) };
        call.multipart =
            Some(vec![part("key", Some(secret.clone())), file, part("last", Some("z".to_owned()))]);
    });
    let entries = [(secret.clone(), heddle_core::secret::Secret::new("geheim"))].into();
    let filling = Filling { secrets: Arc::new(SecretBook { entries }), ..with(whole) };
    lab.call(Phase::Write).write(&sent, &filling, false).await.unwrap();
    let seen = lab.device.writes.lock().unwrap()[0].clone();
    assert_eq!(seen["length"], seen["bytes"].to_string(), "its length is told before");
    let body = seen["body"].as_str().unwrap();
    let places: Vec<usize> =
        ["name=\"key\"\r\n\r\ngeheim\r\n", "name=\"f\"; filename=", "xxx\r\n--", "name=\"last\""]
            .iter()
            .map(|text| body.find(text).unwrap_or_else(|| panic!("{text} is sent: {}", &body[..400])))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[tokio::test]
async fn a_file_that_is_gone_sends_nothing() {
    let lab = lab().await;
    let sent = call(|call| call.file = Some(file()));
    let outbound = lab.call(Phase::Write);
    let fault = outbound.write(&sent, &filling(), false).await.unwrap_err();
    assert_eq!(fault.code.as_deref(), Some("unknown-file"));
    assert!(outbound.ledger().left == 0 && lab.device.writes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_breaks_off_may_have_arrived_and_is_not_sent_again() {
    let lab = lab().await;
    let broken = || {
        let pieces = [Ok(Bytes::from(vec![b'x'; PIECE])), Err(std::io::Error::other("gone"))];
        stream::iter(pieces).boxed()
    };
    let sent = call(|call| call.file = Some(file()));
    let outbound = lab.call(Phase::Write);
    let fault = outbound.write(&sent, &with(broken), false).await.unwrap_err();
    assert_eq!(fault.effect, heddle_core::fault::Effect::Possible);
    assert!(outbound.ledger().left == 1 && lab.device.writes.lock().unwrap().is_empty());
}
