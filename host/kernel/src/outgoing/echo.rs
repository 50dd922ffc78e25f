//! Masks secrets of a request in its answer, before the answer is stored.
//!
//! Masked are the values of headers that users gave, signing secrets, and the query: as they were sent and as JSON
//! writes them. Decoded values of the query are masked, too. A secret that the receiver encodes in another way is not
//! found.

use heddle_core::redact::{MASK, mask_text};
use http::header;
use url::Url;
use zeroize::Zeroizing;

use super::Outgoing;

/// Shorter values are no secrets, and would match everywhere.
const BYTES_MIN: usize = 4;

/// Texts that must not be in the answer, the longest first.
pub(super) struct Secrets(Vec<Zeroizing<String>>);

impl Secrets {
    pub(super) fn of(request: &Outgoing, url: &Url) -> Self {
        let mut secrets = Self(Vec::new());
        for (name, value) in &request.headers {
            if let (true, Ok(text)) = (value.is_sensitive(), value.to_str()) {
                secrets.add(text);
                if name == header::AUTHORIZATION {
                    secrets.add(text.split_once(' ').map_or("", |(_, credential)| credential));
                }
            }
        }
        for secret in request.signing_secret.iter().chain(&request.organization_secrets) {
            secrets.add(secret.expose());
        }
        if let Some(query) = url.query() {
            secrets.add(query);
            for pair in query.split('&') {
                secrets.add(pair.split_once('=').map_or(pair, |(_, value)| value));
            }
            for (_, value) in url.query_pairs() {
                secrets.add(&value);
            }
        }
        if request.is_path_secret {
            secrets.add(url.path());
        }
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }

    fn add(&mut self, text: &str) {
        if text.len() < BYTES_MIN {
            return;
        }
        let quoted = Zeroizing::new(serde_json::Value::from(text).to_string());
        let escaped = &quoted[1..quoted.len() - 1];
        for form in [text.to_owned(), escaped.to_owned(), escaped.replace('/', "\\/"), for_pages(escaped)] {
            if !self.0.iter().any(|known| **known == form) {
                self.0.push(Zeroizing::new(form));
            }
        }
    }

    /// Returns the answer as text; `is_cut` says that the answer was longer.
    pub(super) fn mask(&self, body: &[u8], is_cut: bool) -> String {
        let mut text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        if is_cut && let Some(begun) = self.0.iter().filter_map(|secret| begun(&text, secret)).max() {
            text.truncate(text.len() - begun);
            text.push_str(MASK);
        }
        mask_text(&mut text);
        text
    }
}

/// Escapes as JSON writers do whose output is safe within HTML.
fn for_pages(escaped: &str) -> String {
    escaped.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Returns how many bytes of a secret the text ends with. The work is proportional to the length of the secret (Knuth,
/// Morris and Pratt).
fn begun(text: &str, secret: &str) -> Option<usize> {
    let secret = secret.as_bytes();
    let back = borders(secret);
    let tail = &text.as_bytes()[text.len().saturating_sub(secret.len().saturating_sub(1))..];
    let mut begun = 0;
    for byte in tail {
        while begun > 0 && secret[begun] != *byte {
            begun = back[begun - 1];
        }
        begun += usize::from(secret[begun] == *byte);
    }
    (begun >= BYTES_MIN).then_some(begun)
}

/// Returns, for each prefix of a text, the length of its longest proper prefix that is also its suffix.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len()];
    let mut length = 0;
    for at in 1..text.len() {
        while length > 0 && text[at] != text[length] {
            length = borders[length - 1];
        }
        length += usize::from(text[at] == text[length]);
        borders[at] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use heddle_core::secret::Secret;
    use http::Method;

    use super::*;
    use crate::outgoing::header;

    fn secrets(is_path_secret: bool) -> Secrets {
        let url = "https://hook.example/services/T0/x?token=t%2Fk&n=1";
        let request = Outgoing {
            method: Method::POST,
            url: url.to_owned(),
            headers: vec![
                header("authorization", "Bearer abcd-efgh").unwrap(),
                header("x-key", "a\"b/c").unwrap(),
                header("x-n", "1").unwrap(),
            ],
            body: Vec::new(),
            signing_secret: Some(Secret::new("whsec-0123456789")),
            organization_secrets: Vec::new(),
            is_path_secret,
        };
        Secrets::of(&request, &Url::parse(url).unwrap())
    }

    #[test]
    fn what_is_repeated_is_masked_in_every_form() {
        let said = "1 Bearer abcd-efgh, abcd-efgh, a\"b/c {\"k\":\"a\\\"b/c\"} a\\\"b\\/c whsec-0123456789 t%2Fk \
            /services/T0/x?token=t%2Fk&n=1";
        let shown = secrets(false).mask(said.as_bytes(), false);
        assert_eq!(shown, "1 ***, ***, *** {\"k\":\"***\"} *** *** *** /services/T0/x?***");
        assert_eq!(secrets(true).mask(b"no /services/T0/x", false), "no ***");
        assert_eq!(secrets(false).mask(b"a\0b", false), "a\u{fffd}b");
    }

    #[test]
    fn a_secret_that_was_cut_off_is_masked_too() {
        assert_eq!(secrets(false).mask(b"key: whsec-0123", true), "key: ***");
        assert_eq!(secrets(false).mask(b"key: whsec-0123", false), "key: whsec-0123");
        assert_eq!(secrets(false).mask(b"key: whs", true), "key: whs");
    }
}
