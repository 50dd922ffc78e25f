//! Takes credentials out of answers that repeat them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use heddle_core::redact::MASK;
use heddle_core::secret::Secret;

use super::Response;

/// Shorter ones would hit by chance and make answers unreadable.
const BYTES_MIN: usize = 8;

/// Replaces secrets in an answer by `***`; answers how many there were.
pub(super) fn response(response: &mut Response, secrets: &[Secret]) -> u32 {
    let needles = Needles::of(secrets, BYTES_MIN);
    if needles.texts.is_empty() {
        return 0;
    }
    let mut hits = 0;
    hits += needles.scrub(&mut response.body);
    for (_, value) in &mut response.headers {
        hits += needles.scrub(value);
    }
    if let Some(reason) = &mut response.reason {
        let mut bytes = std::mem::take(reason).into_bytes();
        hits += needles.scrub(&mut bytes);
        *reason = String::from_utf8_lossy(&bytes).into_owned();
    }
    if hits > 0 {
        tracing::warn!(hits, "an answer repeated a credential; it was taken out");
    }
    hits
}

/// Whether a text holds a secret in any spelling. Unlike in an answer, short ones count: one of one or two
/// characters where it is the whole text, a longer one wherever it stands.
pub(super) fn holds(text: &str, secrets: &[Secret]) -> bool {
    const ANYWHERE_BYTES_MIN: usize = 3;
    secrets.iter().any(|secret| secret.expose() == text)
        || Needles::of(secrets, ANYWHERE_BYTES_MIN).scrub(&mut text.as_bytes().to_vec()) > 0
}

/// What to look for.
struct Needles<'a> {
    /// Secrets, any of whose characters may be escaped.
    texts: Vec<&'a str>,
    /// Their base64, longest first.
    encoded: Vec<Vec<u8>>,
    /// Bytes that a needle can begin with.
    begins: [bool; 256],
}

impl<'a> Needles<'a> {
    /// Those of at least `bytes_min`.
    fn of(secrets: &'a [Secret], bytes_min: usize) -> Self {
        let mut texts: Vec<&str> =
            secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= bytes_min).collect();
        texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
        let mut encoded: Vec<Vec<u8>> = texts.iter().flat_map(|text| base64_of(text)).collect();
        encoded.retain(|needle| needle.len() >= bytes_min);
        encoded.sort_unstable_by_key(|needle| std::cmp::Reverse(needle.len()));
        encoded.dedup();
        let mut begins = [false; 256];
        let firsts =
            texts.iter().map(|text| text.as_bytes()[0]).chain(encoded.iter().map(|needle| needle[0]));
        for byte in firsts.chain(*b"%\\+") {
            begins[usize::from(byte)] = true;
        }
        Self { texts, encoded, begins }
    }

    fn scrub(&self, text: &mut Vec<u8>) -> u32 {
        let mut hits = 0;
        let mut clean = Vec::new();
        let (mut at, mut kept) = (0, 0);
        while at < text.len() {
            let found = if self.begins[usize::from(text[at])] { self.find(&text[at..]) } else { None };
            let Some(length) = found else {
                at += 1;
                continue;
            };
            clean.extend_from_slice(&text[kept..at]);
            clean.extend_from_slice(MASK.as_bytes());
            at += length;
            kept = at;
            hits += 1;
        }
        if hits > 0 {
            clean.extend_from_slice(&text[kept..]);
            *text = clean;
        }
        hits
    }

    /// Length of the needle that `text` begins with.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let spelled = self.texts.iter().find_map(|secret| spelled(text, secret));
        spelled.or_else(|| self.encoded.iter().find(|needle| text.starts_with(needle)).map(Vec::len))
    }
}

/// Length of the beginning of `text` that spells `secret`: as it is, or with any
/// of its characters escaped as in a URL, a form or JSON.
fn spelled(text: &[u8], secret: &str) -> Option<usize> {
    let mut chars = secret.chars();
    let mut ends: Vec<usize> = spellings(text, chars.next()?).collect();
    for c in chars {
        ends = ends.iter().flat_map(|at| spellings(&text[*at..], c).map(move |length| at + length)).collect();
        // A backslash may stand for itself or begin an escape, so there can be two ends.
        ends.sort_unstable();
        ends.dedup();
        if ends.is_empty() {
            return None;
        }
    }
    ends.last().copied()
}

/// Lengths of the spellings of one character that `text` begins with.
fn spellings(text: &[u8], c: char) -> impl Iterator<Item = usize> {
    let mut buffer = [0; 4];
    let plain = c.encode_utf8(&mut buffer).as_bytes();
    let literal = text.starts_with(plain).then_some(plain.len());
    let form = (c == ' ' && text.starts_with(b"+")).then_some(1);
    let percent = plain.iter().enumerate().all(|(n, byte)| is_hex(text, n * 3, b"%", u16::from(*byte), 2));
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    let json = units.iter().enumerate().all(|(n, unit)| is_hex(text, n * 6, b"\\u", *unit, 4));
    let short = match c {
        '"' | '\\' | '/' => Some(c),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    };
    let escaped = short
        .is_some_and(|c| text.first() == Some(&b'\\') && text.get(1).copied().map(char::from) == Some(c));
    [literal, form, percent.then_some(plain.len() * 3), json.then_some(units.len() * 6), escaped.then_some(2)]
        .into_iter()
        .flatten()
}

/// Whether `text` has at `at` this prefix and then `value` as so many hex digits.
fn is_hex(text: &[u8], at: usize, prefix: &[u8], value: u16, digits: usize) -> bool {
    let Some(escape) = text.get(at..at + prefix.len() + digits) else { return false };
    let (start, hex) = escape.split_at(prefix.len());
    start == prefix
        && std::str::from_utf8(hex)
            .is_ok_and(|hex| u16::from_str_radix(hex, 16).is_ok_and(|found| found == value))
}

/// Base64 of a secret, alone or in the middle of a longer text ("user:password").
fn base64_of(secret: &str) -> Vec<Vec<u8>> {
    let alone = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD]
        .map(|engine| engine.encode(secret).into_bytes());
    let mut found = Vec::from(alone);
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let text = [&[0; 2][..before], secret.as_bytes()].concat();
            // Digits that hold bits of the neighbours are not ours to know.
            let (first, end) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
            found.push(engine.encode(&text).as_bytes()[first..end].to_vec());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(secret: &str, body: &str, expected: &str) {
        let mut answer = Response {
            status: 200,
            reason: None,
            headers: vec![("x".to_owned(), body.as_bytes().to_vec())],
            body: body.as_bytes().to_vec(),
            elapsed: Duration::ZERO,
        };
        response(&mut answer, &[Secret::new(secret)]);
        assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
        assert_eq!(String::from_utf8(answer.headers.remove(0).1).unwrap(), expected);
    }

    #[test]
    fn an_echo_goes_in_every_spelling() {
        let secret = "p\"ss/w rd+1";
        check(secret, "a p\"ss/w rd+1 b", "a *** b");
        check(secret, r#"{"e":"p\"ss/w rd+1"}"#, r#"{"e":"***"}"#);
        check(secret, r#"{"e":"p\"ss\/w rd+1"}"#, r#"{"e":"***"}"#);
        check(secret, "u=p%22ss%2Fw%20rd%2B1&x", "u=***&x");
        check(secret, "u=p%22ss%2fw%20rd%2b1&x", "u=***&x");
        check(secret, "u=p%22ss%2Fw+rd%2B1&x", "u=***&x");
        check(secret, &format!("b={}", STANDARD.encode(secret)), "b=***");
        // Everything escaped, or only what some library escapes.
        let every: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        check(secret, &format!("u={every}&x"), "u=***&x");
        let every: String = secret.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
        check(secret, &format!("\"{every}\""), "\"***\"");
        check("my-secret word_1", "u=my-secret%20word_1", "u=***");
        check("geheim\u{e4}\u{1f511}", "\"geheim\\u00e4\\ud83d\\udd11\"", "\"***\"");
        check("back\\\\slash", r"a back\\slash b", "a *** b");
        check("back\\\\slash", r#""back\\\\slash""#, r#""***""#);
    }

    #[test]
    fn an_echo_in_the_middle_of_base64_goes_too() {
        for user in ["", "a", "ab", "abc", "root"] {
            let basic = STANDARD.encode(format!("{user}:correct horse:{user}"));
            let mut answer = Response {
                status: 200,
                reason: None,
                headers: Vec::new(),
                body: format!("authorization: Basic {basic}\n").into_bytes(),
                elapsed: Duration::ZERO,
            };
            assert_eq!(response(&mut answer, &[Secret::new("correct horse")]), 1, "{user}");
        }
    }

    #[test]
    fn what_only_begins_like_a_secret_stays() {
        check("correct horse", "correct%20house + \\u0063orrect %63", "correct%20house + \\u0063orrect %63");
        check("correct horse", "correct hors", "correct hors");
    }

    #[test]
    fn a_value_that_holds_a_secret_is_found_however_short_the_secret_is() {
        let secrets = ["root", "abc", "x"].map(Secret::new);
        for text in ["root", "id-root-1", "%72oot", "zabcz", "x", "aWQ6cm9vdA"] {
            assert!(holds(text, &secrets), "{text}");
        }
        for text in ["ro", "0x1f", "site-1", ""] {
            assert!(!holds(text, &secrets), "{text}");
        }
    }

    #[test]
    fn short_secrets_stay() {
        check("root", "root is root", "root is root");
    }
}
