//! What a guest writes into the log in one call: with the interface `log`, or by its standard output and error. All of
//! it has one budget of lines.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Level;

use crate::limits::{LOG_BYTES_MAX, LOG_LINES_MAX, STDIO_BYTES_MAX};

/// The lines of one call. The streams of a guest write to them while the call holds them, too.
#[derive(Debug, Clone)]
pub(crate) struct Lines(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    component: String,
    request_id: String,
    written: usize,
    dropped: usize,
    /// Bytes of both streams that were searched for ends of lines.
    searched: usize,
    last: VecDeque<String>,
    stdout: Unfinished,
    stderr: Unfinished,
}

/// One of the two streams that lines are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The beginning of a line whose end was not written yet.
#[derive(Debug, Default)]
struct Unfinished(Vec<u8>);

impl Unfinished {
    /// What is longer than a line of the log is lost at its end.
    fn extend(&mut self, bytes: &[u8]) {
        let room = LOG_BYTES_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.0);
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Lines {
    /// The last lines that are kept for the analysis of a failure.
    const KEPT: usize = 20;

    pub(crate) fn new(component: &str, request_id: &str) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            component: component.to_owned(),
            request_id: request_id.to_owned(),
            written: 0,
            dropped: 0,
            searched: 0,
            last: VecDeque::new(),
            stdout: Unfinished::default(),
            stderr: Unfinished::default(),
        })))
    }

    /// Logs a line, unless the call has logged [`LOG_LINES_MAX`] lines. `line` is only made when it is.
    pub(crate) fn emit(&self, level: Level, line: impl FnOnce() -> String) {
        self.with(|inner| inner.emit(level, line));
    }

    /// Takes what a guest wrote to a stream, and logs the lines that have ended.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) {
        self.with(|inner| inner.write(stream, bytes));
    }

    /// Logs the lines that have no end, because nothing more will be written.
    pub(crate) fn finish(&self) {
        self.with(|inner| {
            inner.end_line(Stream::Stdout);
            inner.end_line(Stream::Stderr);
        });
    }

    /// The last lines in one.
    pub(crate) fn text(&self) -> String {
        self.with(|inner| inner.last.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn emit(&mut self, level: Level, line: impl FnOnce() -> String) {
        if self.written >= LOG_LINES_MAX {
            self.dropped += 1;
            return;
        }
        self.written += 1;
        let line = tidy(&line());
        let (component, request) = (self.component.as_str(), self.request_id.as_str());
        match level {
            Level::TRACE => tracing::trace!(target: "guest", component, request.id = request, "{line}"),
            Level::DEBUG => tracing::debug!(target: "guest", component, request.id = request, "{line}"),
            Level::INFO => tracing::info!(target: "guest", component, request.id = request, "{line}"),
            Level::WARN => tracing::warn!(target: "guest", component, request.id = request, "{line}"),
            Level::ERROR => tracing::error!(target: "guest", component, request.id = request, "{line}"),
        }
        if self.last.len() == Lines::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let mut rest = &bytes[..bytes.len().min(STDIO_BYTES_MAX - self.searched)];
        self.searched += rest.len();
        self.dropped += usize::from(rest.len() < bytes.len());
        while self.written < LOG_LINES_MAX {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.unfinished(stream).extend(rest);
                return;
            };
            self.unfinished(stream).extend(&rest[..end]);
            self.end_line(stream);
            rest = &rest[end + 1..];
        }
        // Nothing more is logged, so that nothing more is searched for ends of lines.
        self.dropped += usize::from(!rest.is_empty());
    }

    fn end_line(&mut self, stream: Stream) {
        let Some(line) = self.unfinished(stream).take() else { return };
        let level = match stream {
            Stream::Stdout => Level::INFO,
            Stream::Stderr => Level::WARN,
        };
        self.emit(level, || line);
    }

    fn unfinished(&mut self, stream: Stream) -> &mut Unfinished {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

/// One line without characters that control or turn it round, bounded, references masked.
pub(crate) fn tidy(text: &str) -> String {
    let end = text.floor_char_boundary(LOG_BYTES_MAX);
    let mut line: String =
        text[..end].chars().map(|c| if c.is_control() || is_turning(c) { ' ' } else { c }).collect();
    heddle_core::redact::mask_text(&mut line);
    line
}

/// Whether a character ends a line or changes the direction of a text, in what shows it.
fn is_turning(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        Lines::new("acme", "test")
    }

    #[test]
    fn a_line_is_logged_when_it_ends() {
        let lines = lines();
        lines.write(Stream::Stdout, b"one\n\ntw");
        lines.write(Stream::Stderr, b"else\n");
        assert_eq!(lines.text(), "one | else");
        lines.write(Stream::Stdout, b"o\nthree");
        assert_eq!(lines.text(), "one | else | two");
        lines.finish();
        lines.finish();
        assert_eq!(lines.text(), "one | else | two | three");
    }

    #[test]
    fn control_characters_and_broken_text_do_not_reach_the_log() {
        let lines = lines();
        lines.write(Stream::Stderr, b"a\x1b[31mb\rc\xff\n");
        assert_eq!(lines.text(), "a [31mb c\u{fffd}");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let lines = lines();
        for _ in 0..100 {
            lines.write(Stream::Stdout, &[b'x'; 1_000]);
        }
        assert!(lines.with(|inner| inner.stdout.0.capacity()) <= 2 * LOG_BYTES_MAX);
        lines.write(Stream::Stdout, b"\nnext\n");
        assert_eq!(lines.text(), format!("{} | next", "x".repeat(LOG_BYTES_MAX)));
    }

    #[test]
    fn all_ways_into_the_log_have_one_budget() {
        let lines = lines();
        for _ in 0..LOG_LINES_MAX - 1 {
            lines.emit(Level::INFO, || "said".to_owned());
        }
        lines.write(Stream::Stdout, b"last\n");
        lines.write(Stream::Stdout, &b"flood\n".repeat(1_000));
        lines.write(Stream::Stderr, b"flood");
        lines.finish();
        lines.emit(Level::INFO, || unreachable!("no line is made for nothing"));
        assert!(lines.text().ends_with("said | last"));
        let (written, dropped) = lines.with(|inner| (inner.written, inner.dropped));
        assert_eq!((written, dropped), (LOG_LINES_MAX, 3));
    }

    #[test]
    fn a_line_is_cut_by_bytes_and_turns_nothing_round() {
        let lines = lines();
        lines.write(Stream::Stdout, &[0xff; 3 * LOG_BYTES_MAX]);
        lines.write(Stream::Stdout, b"\n");
        assert!(lines.text().len() <= LOG_BYTES_MAX, "{}", lines.text().len());
        lines.write(Stream::Stdout, "a\u{202e}b\u{2028}c\n".as_bytes());
        assert!(lines.text().ends_with("a b c"));
    }

    #[test]
    fn what_has_no_text_is_not_searched_for_ever() {
        let lines = lines();
        for _ in 0..2 * STDIO_BYTES_MAX / (64 << 10) {
            lines.write(Stream::Stdout, &vec![b'\n'; 64 << 10]);
        }
        assert_eq!(lines.with(|inner| inner.searched), STDIO_BYTES_MAX);
        lines.emit(Level::INFO, || "said".to_owned());
        assert_eq!(lines.text(), "said");
    }
}
