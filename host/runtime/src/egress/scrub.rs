//! Takes credentials out of answers that repeat them.
//!
//! The work grows with the answer alone, whatever it holds. An answer is read through up to four times: as it is, and
//! with escapes of JSON, of URLs and of both decoded. Each time every byte is one step of an automaton that looks for
//! all secrets at once, so no byte is looked at again because a secret only began there. The automaton knows the first
//! [`CUT`] bytes of a secret; what follows them is compared once and is then behind the reader.

use std::cell::OnceCell;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use heddle_core::redact::MASK;
use heddle_core::secret::Secret;

use super::decoded::{Reader, View};
use super::request::Response;

/// Shorter ones would hit by chance and make answers unreadable.
const BYTES_MIN: usize = 8;
/// As much of a secret is looked for; of a longer one also as much as follows.
const CUT: usize = 128;
/// Places in the table of beginnings.
const SLOTS: usize = 1 << 12;

/// Replaces secrets in an answer by `***`; answers how many there were.
pub(super) fn response(response: &mut Response, secrets: &[Secret]) -> u32 {
    let needles = Needles::of(secrets);
    if needles.whole.is_empty() {
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

/// Whether a text of a few hundred bytes holds a secret in any spelling. Unlike in an answer, short ones count: one of
/// one or two characters where it is the whole text, a longer one wherever it stands.
pub(super) fn holds(text: &str, secrets: &[Secret]) -> bool {
    const ANYWHERE_BYTES_MIN: usize = 3;
    let folded = |bytes: Vec<u8>| -> Vec<u8> { bytes.into_iter().map(Reader::fold).collect() };
    let views = [View::Plain, View::Json, View::Url, View::Both].map(|view| {
        let mut reader = Reader::new(view);
        std::iter::from_fn(|| reader.next(text.as_bytes()).map(|byte| byte.value)).collect::<Vec<u8>>()
    });
    secrets.iter().map(Secret::expose).filter(|secret| !secret.is_empty()).any(|secret| {
        if secret.len() < ANYWHERE_BYTES_MIN {
            return secret == text;
        }
        let encoded = base64_of(secret).into_iter().filter(|needle| needle.len() >= ANYWHERE_BYTES_MIN);
        let mut needles = std::iter::once(secret.as_bytes().to_vec()).chain(encoded).map(folded);
        needles.any(|needle| views.iter().any(|view| view.windows(needle.len()).any(|part| part == needle)))
    })
}

/// [`response`] for a body alone.
pub(crate) fn body(body: &mut Vec<u8>, secrets: &[Secret]) -> u32 {
    Needles::of(secrets).scrub(body)
}

/// What to look for.
struct Needles {
    /// Secrets and their base64 as a [`Reader`] gives them, sorted.
    whole: Vec<Vec<u8>>,
    /// The first [`BYTES_MIN`] bytes of each, sorted: most answers hold none, and need no automaton.
    beginnings: Vec<u64>,
    /// Where one of those is, by [`slot`]: most bytes are not looked for among them.
    begins: Box<[bool; SLOTS]>,
    automaton: OnceCell<Option<Automaton>>,
}

/// Finds the beginnings of all needles.
struct Automaton {
    nfa: contiguous::NFA,
    /// Of each beginning the needles that are longer than it.
    longer: Vec<Vec<usize>>,
}

/// The place of eight bytes in the table of beginnings.
fn slot(window: u64) -> usize {
    usize::try_from(window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52).unwrap_or_default()
}

impl Needles {
    fn of(secrets: &[Secret]) -> Self {
        let texts = secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= BYTES_MIN);
        let mut whole: Vec<Vec<u8>> = texts
            .flat_map(|text| std::iter::once(text.as_bytes().to_vec()).chain(base64_of(text)))
            .filter(|needle| needle.len() >= BYTES_MIN)
            .map(|needle| needle.into_iter().map(Reader::fold).collect())
            .collect();
        whole.sort_unstable();
        whole.dedup();
        let window = |needle: &Vec<u8>| {
            needle[..BYTES_MIN].iter().fold(0, |window, byte| window << 8 | u64::from(*byte))
        };
        // In the order of their needles, which are sorted.
        let beginnings: Vec<u64> = whole.iter().map(window).collect();
        let mut begins = Box::new([false; SLOTS]);
        for beginning in &beginnings {
            begins[slot(*beginning)] = true;
        }
        Self { whole, beginnings, begins, automaton: OnceCell::new() }
    }

    fn scrub(&self, text: &mut Vec<u8>) -> u32 {
        let (json, url) = (text.contains(&b'\\'), text.contains(&b'%'));
        let mut hits = 0;
        for (is_needed, view) in
            [(true, View::Plain), (json, View::Json), (url, View::Url), (json && url, View::Both)]
        {
            if is_needed && self.may_occur(text, view) {
                let spans = self.spans(text, view);
                hits += u32::try_from(spans.len()).unwrap_or(u32::MAX);
                mask(text, &spans);
            }
        }
        hits
    }

    /// Whether eight bytes in a row are how a needle may begin.
    fn may_occur(&self, text: &[u8], view: View) -> bool {
        let (mut reader, mut window, mut read) = (Reader::new(view), 0_u64, 0);
        while let Some(byte) = reader.next(text) {
            window = window << 8 | u64::from(byte.value);
            read += 1;
            let may_begin = read >= BYTES_MIN && self.begins[slot(window)];
            if may_begin && self.beginnings.binary_search(&window).is_ok() {
                return true;
            }
        }
        false
    }

    /// Where needles are, in order and apart from each other.
    fn spans(&self, text: &[u8], view: View) -> Vec<(usize, usize)> {
        let automaton = self.automaton.get_or_init(|| Automaton::of(&self.whole)).as_ref();
        let start = automaton.and_then(|found| found.nfa.start_state(Anchored::No).ok());
        // What cannot be searched is not shown.
        let Some((Automaton { nfa, longer }, start)) = automaton.zip(start) else {
            return vec![(0, text.len())];
        };
        let mut spans: Vec<(usize, usize)> = Vec::new();
        let (mut reader, mut state, mut read) = (Reader::new(view), start, 0);
        // Where the last bytes began, to know where a needle did.
        let mut starts = [0; CUT];
        while let Some(byte) = reader.next(text) {
            starts[read % CUT] = byte.begin;
            read += 1;
            state = nfa.next_state(Anchored::No, state, byte.value);
            if !nfa.is_match(state) {
                continue;
            }
            // The first of a state is the longest.
            let pattern = nfa.match_pattern(state, 0);
            let begin = starts[(read - nfa.pattern_len(pattern)) % CUT];
            if self.follow(text, &mut reader, &longer[pattern.as_usize()]) {
                state = start;
            }
            push(&mut spans, (begin, reader.at()));
        }
        spans
    }

    /// Moves behind what follows the beginning of one of these needles, as far as it is equal.
    fn follow(&self, text: &[u8], reader: &mut Reader, longer: &[usize]) -> bool {
        let mut rests: Vec<&[u8]> = longer.iter().map(|at| &self.whole[*at][CUT..]).collect();
        let mut has_moved = false;
        loop {
            let mut ahead = reader.clone();
            let Some(byte) = ahead.next(text) else { return has_moved };
            rests.retain_mut(|rest| match rest.split_first() {
                Some((first, behind)) if *first == byte.value => {
                    *rest = behind;
                    true
                }
                _ => false,
            });
            if rests.is_empty() {
                return has_moved;
            }
            *reader = ahead;
            has_moved = true;
        }
    }
}

impl Automaton {
    fn of(whole: &[Vec<u8>]) -> Option<Self> {
        let (mut beginnings, mut longer): (Vec<&[u8]>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        // They are sorted, so those with one beginning stand together.
        for (at, needle) in whole.iter().enumerate() {
            let beginning = &needle[..needle.len().min(CUT)];
            if beginnings.last() != Some(&beginning) {
                beginnings.push(beginning);
                longer.push(Vec::new());
            }
            if let Some(of_beginning) = longer.last_mut().filter(|_| needle.len() > CUT) {
                of_beginning.push(at);
            }
        }
        let nfa = contiguous::Builder::new().prefilter(false).build(&beginnings);
        nfa.inspect_err(|error| tracing::error!(error = %error, "secrets cannot be looked for"))
            .ok()
            .map(|nfa| Self { nfa, longer })
    }
}

/// Adds a span that ends behind all others. Those that it reaches into become one with it.
fn push(spans: &mut Vec<(usize, usize)>, (mut begin, end): (usize, usize)) {
    while let Some(last) = spans.pop_if(|last| begin < last.1) {
        begin = begin.min(last.0);
    }
    spans.push((begin, end));
}

/// Puts `***` in place of these spans, in one pass.
fn mask(text: &mut Vec<u8>, spans: &[(usize, usize)]) {
    let mut clean = Vec::with_capacity(text.len());
    let mut kept = 0;
    for (begin, end) in spans {
        clean.extend_from_slice(&text[kept..*begin]);
        clean.extend_from_slice(MASK.as_bytes());
        kept = *end;
    }
    clean.extend_from_slice(&text[kept..]);
    *text = clean;
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
            held: super::super::held::Held::default(),
            kept: None,
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
                held: super::super::held::Held::default(),
                kept: None,
            };
            assert_eq!(response(&mut answer, &[Secret::new("correct horse")]), 1, "{user}");
        }
    }

    #[test]
    fn what_only_begins_like_a_secret_stays() {
        check("correct horse", "correct%20house + \\u0063orrect %63", "correct%20house + \\u0063orrect %63");
        check("correct horse", "correct hors", "correct hors");
    }

    fn masked(body: &str, secrets: &[&str]) -> String {
        let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        let mut text = body.as_bytes().to_vec();
        Needles::of(&secrets).scrub(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_long_secret_goes_with_all_that_follows_its_beginning() {
        let (one, two) = ("ab/".repeat(100), format!("{}tail", "ab/".repeat(90)));
        check(&one, &format!("x{one}y"), "x***y");
        check(&one, &format!("x{}y", one.replace('/', "\\/")), "x***y");
        assert_eq!(masked(&format!("1 {one} 2 {two} 3"), &[&one, &two]), "1 *** 2 *** 3");
    }

    #[test]
    fn a_secret_within_another_leaves_nothing_of_it() {
        let (long, middle, end) = ("the inner secret of all", "inner secret", "secret of all");
        let body = format!("<{long}> <{middle}> <{end}>");
        assert_eq!(masked(&body, &[middle, long, end]), "<***> <***> <***>");
    }

    #[test]
    fn looking_takes_work_in_proportion_to_the_answer() {
        let (backslashes, nearly) = ("\\".repeat(300), format!("{}b", "a".repeat(300)));
        let secrets = ["\\\\\\\\\\\\\\\\\\\\", &backslashes, &nearly, "%25%25%25%25%25"].map(Secret::new);
        for piece in ["\\", "a", "\\u0061", "%25", "%", "\\\\%5c", "aaaaaaab", "+ ", "\\ud83d"] {
            for length in [20_000, 160_000] {
                let text = piece.repeat(length / piece.len());
                let worked = crate::egress::decoded::counted(|| {
                    Needles::of(&secrets).scrub(&mut text.clone().into_bytes());
                });
                // Four views, each looked through twice, and what follows a beginning once more.
                assert!(worked <= 12 * text.len(), "'{piece}': {worked} steps for {} bytes", text.len());
            }
        }
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
