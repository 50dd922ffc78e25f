//! Requests and answers as guests see them, and what a write may send.

use std::time::Duration;

use heddle_core::change::NativeCall;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::file::{SentFile, SentPart};
use serde_json::Value;

use super::held::Held;
use crate::api::{FileBook, FileContent, KeptFile};

/// A request as a guest asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: http::Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Body,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_response: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    None,
    Json(Value),
    Form(Vec<(String, String)>),
    Multipart(Vec<Part>),
    Bytes(String, Vec<u8>),
    /// Media type and file; only a reviewed call has it.
    File(String, Attached),
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) filename: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// Only a reviewed call has it.
    File(Attached),
}

/// A file that a reviewed call sends.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    sha256: String,
    /// `None` until the call is about to be sent.
    pub(crate) content: Option<FileContent>,
}

impl Attached {
    fn of(file: &SentFile) -> Self {
        Self { sha256: file.sha256.clone(), content: None }
    }
}

/// Which secrets a request carries, by name.
#[derive(Debug, Clone)]
pub(crate) enum Auth {
    None,
    Session(String),
    Basic(String, String),
    Inject(Vec<(Place, String)>),
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    Bearer,
    Header(String, String),
    Query(String),
    JsonPointer(String),
    FormField(String),
}

/// An answer as a guest sees it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) reason: Option<String>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) elapsed: Duration,
    /// Room that the body takes, until the guest has it.
    pub(crate) held: Held,
    /// The file that the host kept; `body` is empty then.
    pub(crate) kept: Option<KeptFile>,
}

impl Request {
    /// A GET without a body or headers.
    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: http::Method::GET,
            path: path.to_owned(),
            headers: Vec::new(),
            body: Body::None,
            timeout: None,
            max_response: None,
        }
    }

    /// The request of a reviewed call, before its references are filled in, and the session that it is sent in.
    pub(crate) fn of(call: &NativeCall) -> Result<(Self, Auth), Fault> {
        let method = http::Method::from_bytes(call.method.as_bytes())
            .map_err(|_| denied("method", format!("'{}' is not a method", call.method)))?;
        let body = match (&call.body, &call.form, &call.file, &call.multipart) {
            (None, None, None, None) => Body::None,
            (Some(body), None, None, None) => Body::Json(body.clone()),
            (None, Some(form), None, None) => Body::Form(form.clone()),
            (None, None, Some(file), None) => Body::File(file.content_type.clone(), Attached::of(file)),
            (None, None, None, Some(parts)) => {
                Body::Multipart(parts.iter().map(Part::of).collect::<Result<_, _>>()?)
            }
            _ => return Err(denied("body", "a call has one body")),
        };
        let headers = call.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let request = Self {
            method,
            path: call.path.clone(),
            headers: headers.collect(),
            body,
            timeout: None,
            max_response: None,
        };
        Ok((request, call.session.clone().map_or(Auth::None, Auth::Session)))
    }
}

impl Request {
    /// Gives the bytes to the files of a reviewed call.
    pub(crate) fn attach(&mut self, files: &FileBook) -> Result<(), Fault> {
        let attached: Vec<&mut Attached> = match &mut self.body {
            Body::File(_, file) => vec![file],
            Body::Multipart(parts) => parts.iter_mut().filter_map(Part::file).collect(),
            _ => Vec::new(),
        };
        for file in attached {
            let content = files.entries.get(&file.sha256).ok_or_else(|| {
                let digest = &file.sha256;
                denied("unknown-file", format!("the file with the SHA-256 {digest} is not there any more"))
            })?;
            file.content = Some(content.clone());
        }
        Ok(())
    }
}

impl Part {
    /// The part of a reviewed call.
    fn of(part: &SentPart) -> Result<Self, Fault> {
        let (filename, content_type, content) = match (&part.text, &part.file) {
            (Some(text), None) => (None, None, Content::Bytes(text.clone().into_bytes())),
            (None, Some(file)) => {
                let (name, kind) = (file.name.clone(), file.content_type.clone());
                (Some(name), Some(kind), Content::File(Attached::of(file)))
            }
            _ => return Err(denied("body", "a part is a text or a file")),
        };
        let has_control = |text: &str| text.contains(char::is_control);
        if has_control(&part.name) || filename.as_deref().is_some_and(has_control) {
            return Err(denied("body", "the name of a part has control characters"));
        }
        Ok(Self { name: part.name.clone(), filename, content_type, content })
    }

    fn file(&mut self) -> Option<&mut Attached> {
        match &mut self.content {
            Content::File(file) => Some(file),
            Content::Bytes(_) => None,
        }
    }

    /// Bytes that it holds itself; those of a file are not held.
    pub(super) fn held(&self) -> usize {
        match &self.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::File(_) => 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Bytes(bytes) if bytes.is_empty())
    }
}

/// A request that was refused because the guest may not send it.
pub(crate) fn denied(code: &str, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Denied, message).with_code(code)
}
