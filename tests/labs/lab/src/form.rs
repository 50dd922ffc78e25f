//! Forms with parts (`multipart/form-data`), read while they come: of a file its size and digest are kept.

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

/// Most bytes of what is kept: the head of a part, or its text.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A part of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormPart {
    pub name: String,
    /// Set where it is a file.
    pub file_name: Option<String>,
    /// Empty where it is a file.
    pub text: String,
    pub bytes: u64,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
}

impl FormPart {
    /// A part as a host that sends no bytes of files has it: a file's content is its reference, which has its digest.
    #[must_use]
    pub fn of_reference(name: &str, file_name: Option<&str>, content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content).into_owned();
        let (name, file_name) = (name.to_owned(), file_name.map(str::to_owned));
        match text.strip_prefix("hdl-file:").filter(|_| file_name.is_some()) {
            Some(sha256) => {
                Self { name, file_name, bytes: 64, sha256: sha256.to_owned(), text: String::new() }
            }
            None => Self { name, file_name, text, ..Self::default() },
        }
    }
}

/// The boundary of a form with parts; `None` for another content type.
pub(crate) fn boundary_of(content_type: &str) -> Option<&str> {
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let (_, boundary) = rest.split_once("boundary=")?;
    Some(boundary.split(';').next()?.trim().trim_matches('"'))
}

/// Reads a form to its end. `None` where it breaks off, is none, or where so many bytes of it have come.
pub(crate) async fn read(body: Body, boundary: &str, until: Option<u64>) -> Option<Vec<FormPart>> {
    let mut reader = Reader::new(boundary);
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut came = 0;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.ok()?;
        came += chunk.len() as u64;
        if until.is_some_and(|until| came >= until) {
            return None;
        }
        reader.take(&chunk)?;
    }
    reader.is_ended.then_some(reader.done)
}

struct Part {
    known: FormPart,
    text: Vec<u8>,
    digest: Sha256,
}

struct Reader {
    /// What stands before each part but the first, without what ends its line.
    delimiter: Vec<u8>,
    /// What came and is not taken yet.
    rest: Vec<u8>,
    open: Option<Part>,
    done: Vec<FormPart>,
    is_ended: bool,
}

impl Reader {
    fn new(boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first part has no line before it.
        Self { delimiter, rest: b"\r\n".to_vec(), open: None, done: Vec::new(), is_ended: false }
    }

    fn take(&mut self, chunk: &[u8]) -> Option<()> {
        self.rest.extend_from_slice(chunk);
        while !self.is_ended {
            let Some(part) = &mut self.open else {
                if self.begin()? {
                    continue;
                }
                return Some(());
            };
            let end = find(&self.rest, &self.delimiter);
            // The beginning of a delimiter may be at the end of what came.
            let ready = end.unwrap_or(self.rest.len().saturating_sub(self.delimiter.len()));
            part.add(&self.rest[..ready])?;
            self.rest.drain(..ready);
            if end.is_none() {
                return Some(());
            }
            self.done.push(self.open.take()?.finished());
        }
        Some(())
    }

    /// Begins the next part, when all of its head has come.
    fn begin(&mut self) -> Option<bool> {
        let begin = self.delimiter.len();
        if self.rest.len() < begin + 2 {
            return Some(false);
        }
        if !self.rest.starts_with(&self.delimiter) {
            return None;
        }
        if &self.rest[begin..begin + 2] == b"--" {
            self.is_ended = true;
            return Some(true);
        }
        let Some(length) = find(&self.rest[begin..], b"\r\n\r\n") else {
            return (self.rest.len() < KEPT_BYTES_MAX).then_some(false);
        };
        let head = String::from_utf8_lossy(&self.rest[begin..begin + length]).into_owned();
        self.rest.drain(..begin + length + 4);
        self.open = Some(Part {
            known: FormPart {
                name: attribute(&head, "name")?,
                file_name: attribute(&head, "filename"),
                ..FormPart::default()
            },
            text: Vec::new(),
            digest: Sha256::new(),
        });
        Some(true)
    }
}

impl Part {
    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        self.known.bytes += bytes.len() as u64;
        self.digest.update(bytes);
        if self.known.file_name.is_none() {
            self.text.extend_from_slice(bytes);
        }
        (self.text.len() <= KEPT_BYTES_MAX).then_some(())
    }

    fn finished(mut self) -> FormPart {
        self.known.text = String::from_utf8_lossy(&self.text).into_owned();
        self.known.sha256 = hex::encode(self.digest.finalize());
        self.known
    }
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let start = head.find(&format!(" {name}=\""))? + name.len() + 3;
    head[start..].split('"').next().map(str::to_owned)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &[u8] = b"--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\none\r\n--x\r\n\
        content-disposition: form-data; name=\"f\"; filename=\"b.iso\"\r\ncontent-type: application/octet-stream\r\n\r\n\
        \r\n--y\r\n\r\n--x--\r\n";

    #[test]
    fn a_form_is_the_same_in_whatever_pieces_it_comes() {
        for size in [1, 2, 3, 7, FORM.len()] {
            let mut reader = Reader::new("x");
            for chunk in FORM.chunks(size) {
                reader.take(chunk).unwrap();
            }
            assert!(reader.is_ended, "{size}");
            let [text, file] = &reader.done[..] else { panic!("two parts: {:?}", reader.done) };
            assert_eq!((text.name.as_str(), text.text.as_str(), &text.file_name), ("a", "one", &None));
            assert_eq!((file.name.as_str(), file.file_name.as_deref(), file.bytes), ("f", Some("b.iso"), 7));
            assert_eq!(file.sha256, hex::encode(Sha256::digest(b"\r\n--y\r\n")));
        }
    }
}
