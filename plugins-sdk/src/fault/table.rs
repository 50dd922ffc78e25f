//! What a vendor's refusals mean, as data: codes and words of answers on one side, faults on the other.

use super::{of_status, one_line, said, text};
use crate::{Effect, Fault, FaultExt as _, FaultInfo, Response};

/// A variant of [`Fault`], such as `Fault::Denied`.
pub type Kind = fn(FaultInfo) -> Fault;

/// Parts of reasons, without capitals, that mean the same.
pub type Words = &'static [&'static str];

/// What a vendor's refusals mean. The first row that fits an answer counts.
///
/// ```
/// use heddle_sdk::fault::{Row, Table};
/// use heddle_sdk::{Effect, Fault, FaultExt};
///
/// const REFUSALS: Table = Table::new(&[
///     Row::codes(&[-5, -6], Fault::Denied, "the account may not do this"),
///     Row::codes(&[-9], Fault::Busy, "a backup is running").with_retry_after_ms(30_000),
///     Row::words(&["already exists", "is taken"], Fault::Conflict, "the name is taken: {}"),
///     Row::rest(Fault::Generic, "the router refuses ({code}): {}").with_effect(Effect::Possible),
/// ]);
///
/// let fault = REFUSALS.of_code(-7, "VLAN 5 already exists\n");
/// assert!(matches!(fault, Fault::Conflict(_)));
/// assert_eq!(fault.info().message, "the name is taken: VLAN 5 already exists");
/// assert_eq!(fault.info().code.as_deref(), Some("vendor:-7"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Table {
    rows: &'static [Row],
}

/// Which answers a row of a [`Table`] is about, and the fault that they are.
///
/// In its text, `{}` stands for the vendor's words as [`said`] quotes them, and `{code}` for the code or status.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    codes: &'static [i64],
    /// Words of which the reason contains one; empty where the row does not look at the reason. A caller that makes more of
    /// an answer than the row's fault compares them, to know which row it was.
    pub words: Words,
    kind: Kind,
    text: &'static str,
    code: Option<&'static str>,
    retry_after_ms: Option<u64>,
    effect: Effect,
}

/// What a table says of an answer that none of its rows fits. Nothing is known of what the device did.
const UNKNOWN: Row = Row::rest(Fault::Generic, "the device refuses it: {}").with_effect(Effect::Possible);

impl Table {
    /// A table of these rows. [`Row::rest`] stands last, where there is one.
    #[must_use]
    pub const fn new(rows: &'static [Row]) -> Self {
        Self { rows }
    }

    /// Returns the fault of a code of the vendor, which it keeps as `vendor:<code>` where the row has no code of its own.
    ///
    /// `said` is what the vendor writes beside the code. Where no row fits, the fault is generic and its effect
    /// [`Effect::Possible`].
    #[must_use]
    pub fn of_code(&self, code: i64, said: &str) -> Fault {
        let row = self.find(Some(code), said).unwrap_or(UNKNOWN);
        row.made(Some(code), said).or_code(format!("vendor:{code}"))
    }

    /// Returns the fault of an answer by its status; what [`of_status`] says where no row fits.
    ///
    /// `said` is what the body or the status line gives as the reason.
    #[must_use]
    pub fn of_status(&self, response: &Response, said: &str) -> Fault {
        let status = Some(i64::from(response.status));
        match self.find(status, said) {
            Some(row) => row.made(status, said).with_upstream_status(response.status),
            None => of_status(response),
        }
    }

    /// Returns the row of a reason that comes without a code or status. Rows that name codes do not count.
    #[must_use]
    pub fn of_words(&self, said: &str) -> Row {
        self.find(None, said).unwrap_or(UNKNOWN)
    }

    fn find(&self, code: Option<i64>, said: &str) -> Option<Row> {
        let said = one_line(said).to_lowercase();
        let has_code = |row: &Row| row.codes.is_empty() || code.is_some_and(|code| row.codes.contains(&code));
        let has_words = |row: &Row| row.words.is_empty() || row.words.iter().any(|word| said.contains(word));
        self.rows.iter().find(|row| has_code(row) && has_words(row)).copied()
    }
}

impl Row {
    /// Answers with one of these codes or statuses.
    #[must_use]
    pub const fn codes(codes: &'static [i64], kind: Kind, text: &'static str) -> Self {
        Row { codes, ..Self::rest(kind, text) }
    }

    /// Answers whose reason contains one of these words. Capitals of the reason do not count, and the words are written
    /// without any: a constant table with some, or with an empty word, does not compile.
    #[must_use]
    pub const fn words(words: Words, kind: Kind, text: &'static str) -> Self {
        Self::rest(kind, text).with_words(words)
    }

    /// All answers: for the last row.
    #[must_use]
    pub const fn rest(kind: Kind, text: &'static str) -> Self {
        Row { codes: &[], words: &[], kind, text, code: None, retry_after_ms: None, effect: Effect::None }
    }

    /// The same, of those answers only that contain one of these words, too.
    #[must_use]
    pub const fn with_words(mut self, words: Words) -> Self {
        let mut at = 0;
        while at < words.len() {
            assert!(can_be_found(words[at]), "words of a table are not empty and have no capitals");
            at += 1;
        }
        self.words = words;
        self
    }

    /// The same with a stable code in the place of `vendor:<code>`.
    #[must_use]
    pub const fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same with [`FaultExt::with_retry_after_ms`].
    #[must_use]
    pub const fn with_retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// The same with [`FaultExt::with_effect`].
    #[must_use]
    pub const fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Returns the fault of a reason that comes without a code or status.
    #[must_use]
    pub fn fault(&self, said: &str) -> Fault {
        self.made(None, said)
    }

    fn made(&self, code: Option<i64>, words: &str) -> Fault {
        let number = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
        // The vendor's words go in last: a `{code}` in them is not ours.
        let message = self.text.replace("{code}", &number).replace("{}", &said(words));
        let mut info = text(message);
        info.code = self.code.map(str::to_owned);
        info.retry_after_ms = self.retry_after_ms;
        info.effect = self.effect;
        (self.kind)(info)
    }
}

/// Reasons are looked at in lower case, and every reason contains the empty word.
const fn can_be_found(word: &str) -> bool {
    let bytes = word.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_uppercase() {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Words = &["does not exist", "no such"];

    const TABLE: Table = Table::new(&[
        Row::codes(&[-1, 404], Fault::Unsupported, "this release does not have it"),
        Row::codes(&[-2], Fault::NotFound, "it is not there: {}").with_words(ABSENT),
        Row::codes(&[-2, 400], Fault::Invalid, "refused ({code}): {}"),
        Row::words(&["is locked"], Fault::Busy, "in use: {}").with_retry_after_ms(5_000),
        Row::words(&["changed meanwhile"], Fault::StateMoved, "plan again").with_code("state-moved"),
        Row::words(ABSENT, Fault::NotFound, "it is not there: {}").with_effect(Effect::Possible),
    ]);

    fn answer(status: u16) -> Response {
        Response { status, reason: None, headers: Vec::new(), body: Vec::new(), elapsed_ms: 1 }
    }

    #[track_caller]
    fn check(fault: &Fault, word: &str, message: &str, code: Option<&str>) {
        let info = fault.info();
        assert_eq!((fault.word(), info.message.as_str(), info.code.as_deref()), (word, message, code));
    }

    #[test]
    fn first_row_that_fits_code_and_words_counts() {
        check(
            &TABLE.of_code(-1, "VM is locked"),
            "unsupported",
            "this release does not have it",
            Some("vendor:-1"),
        );
        check(
            &TABLE.of_code(-2, "No such VLAN"),
            "not_found",
            "it is not there: No such VLAN",
            Some("vendor:-2"),
        );
        check(&TABLE.of_code(-2, "bad value"), "invalid", "refused (-2): bad value", Some("vendor:-2"));
        check(&TABLE.of_code(-3, "VM IS LOCKED"), "busy", "in use: VM IS LOCKED", Some("vendor:-3"));
        check(&TABLE.of_code(-3, "changed meanwhile"), "state_moved", "plan again", Some("state-moved"));
    }

    #[test]
    fn row_gives_retry_and_effect() {
        let busy = TABLE.of_code(7, "is locked");
        assert_eq!(busy.info().retry_after_ms, Some(5_000));
        assert!(matches!(busy.info().effect, Effect::None));
        assert!(matches!(TABLE.of_code(7, "no such").info().effect, Effect::Possible));
    }

    #[test]
    fn code_without_a_row_promises_nothing() {
        let fault = TABLE.of_code(9, "");
        check(&fault, "generic", "the device refuses it: no reason given", Some("vendor:9"));
        assert!(matches!(fault.info().effect, Effect::Possible));
    }

    #[test]
    fn status_has_no_code_and_the_general_meaning_where_no_row_fits() {
        let fault = TABLE.of_status(&answer(400), "bad\r\nvalue");
        check(&fault, "invalid", "refused (400): bad  value", None);
        assert_eq!(fault.info().upstream_status, Some(400));
        let fault = TABLE.of_status(&answer(401), "");
        check(&fault, "authentication", "the controller refuses the credential", None);
        assert_eq!(fault.info().upstream_status, Some(401));
    }

    #[test]
    fn row_of_words_alone_is_told_by_them() {
        let row = TABLE.of_words("no such file");
        assert_eq!(row.words, ABSENT);
        check(&row.fault("no such {code}"), "not_found", "it is not there: no such {code}", None);
        assert!(TABLE.of_words("404").words.is_empty());
    }

    #[test]
    fn words_are_looked_for_in_all_of_a_long_reason() {
        let reason = format!("{} is locked", "x".repeat(1_000));
        let fault = TABLE.of_code(0, &reason);
        assert_eq!((fault.word(), fault.info().message.chars().count()), ("busy", "in use: ".len() + 400));
    }
}
