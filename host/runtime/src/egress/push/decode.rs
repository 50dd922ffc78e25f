//! Takes messages out of the bytes of a stream: server-sent events, or lines of JSON.
//!
//! Nothing is decoded before it is asked for, so that a stream of tiny messages takes no more room than its bytes.

use heddle_marketplace::push::StreamFormat;

use super::ended::Ended;
use super::incoming::Incoming;
use super::limits::MESSAGE_BYTES_MAX;

/// The name of an event that has none (HTML, section "Server-sent events").
const UNNAMED: &str = "message";

/// What came and was not taken yet.
#[derive(Debug)]
pub(super) struct Decoder {
    format: StreamFormat,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were taken.
    taken: usize,
    /// Bytes behind them that have no end of a line.
    scanned: usize,
    /// The last line ended with CR: an LF that follows belongs to it.
    skips_lf: bool,
    event: String,
    data: Option<Vec<u8>>,
}

impl Decoder {
    pub(super) fn new(format: StreamFormat) -> Self {
        Self {
            format,
            buffer: Vec::new(),
            taken: 0,
            scanned: 0,
            skips_lf: false,
            event: String::new(),
            data: None,
        }
    }

    pub(super) fn put(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// The next message, where it is there as a whole.
    ///
    /// # Errors
    /// It has more bytes than a message may have.
    pub(super) fn pull(&mut self) -> Result<Option<Incoming>, Ended> {
        while let Some(line) = self.line()? {
            let message = match self.format {
                StreamFormat::JsonLines => (!line.trim_ascii().is_empty()).then_some(Incoming::Text(line)),
                StreamFormat::Sse => self.field(&line)?,
            };
            if message.is_some() {
                return Ok(message);
            }
        }
        Ok(None)
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Ended> {
        if self.skips_lf
            && let Some(byte) = self.buffer.get(self.taken)
        {
            self.skips_lf = false;
            if *byte == b'\n' {
                self.taken += 1;
            }
        }
        let left = self.buffer.get(self.taken..).unwrap_or_default();
        let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r' && self.format == StreamFormat::Sse;
        let end = left.iter().skip(self.scanned).position(is_end).map(|at| at + self.scanned);
        let length = end.unwrap_or(left.len());
        if length > MESSAGE_BYTES_MAX {
            return Err(Ended::TooLarge);
        }
        let Some(end) = end else {
            self.scanned = left.len();
            return Ok(None);
        };
        let line = left.get(..end).unwrap_or_default().to_vec();
        self.skips_lf = left.get(end) == Some(&b'\r');
        (self.taken, self.scanned) = (self.taken + end + 1, 0);
        Ok(Some(line))
    }

    /// Takes a line of a server-sent event; an empty one ends the event.
    fn field(&mut self, line: &[u8]) -> Result<Option<Incoming>, Ended> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let event = if event.is_empty() { UNNAMED.to_owned() } else { event };
            return Ok(self.data.take().map(|data| Incoming::Event(event, data)));
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"data" => match &mut self.data {
                None => self.data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            },
            // Comments, ids, times to wait: nothing for a host that asks anew after each gap.
            _ => {}
        }
        let bytes = self.event.len() + self.data.as_ref().map_or(0, Vec::len);
        if bytes > MESSAGE_BYTES_MAX { Err(Ended::TooLarge) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of a stream whose bytes come so many at a time.
    fn decoded(format: StreamFormat, bytes: &[u8], at_once: usize) -> Vec<(String, String)> {
        let (mut decoder, mut found) = (Decoder::new(format), Vec::new());
        for chunk in bytes.chunks(at_once) {
            decoder.put(chunk);
            while let Some(message) = decoder.pull().unwrap() {
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                found.push(match message {
                    Incoming::Text(line) => (String::new(), text(line)),
                    Incoming::Event(event, data) => (event, text(data)),
                    other => panic!("{other:?}"),
                });
            }
        }
        found
    }

    #[test]
    fn events_are_found_however_their_bytes_come() {
        let stream = b": hello\n\nevent: up\ndata: {\"a\":1}\n\nevent:down\r\ndata:{\r\ndata: }\r\n\r\nid: 7\rdata: 1\r\rretry: 5\n\nevent: none\n\ndata\n\ndata: cut";
        let expected = [("up", "{\"a\":1}"), ("down", "{\n}"), ("message", "1"), ("message", "")];
        for at_once in [1, 2, 3, 7, 1_000] {
            let found = decoded(StreamFormat::Sse, stream, at_once);
            let found: Vec<_> = found.iter().map(|(event, data)| (event.as_str(), data.as_str())).collect();
            assert_eq!(found, expected, "{at_once} bytes at once");
        }
    }

    #[test]
    fn lines_are_found_however_their_bytes_come() {
        for at_once in [1, 2, 1_000] {
            let found =
                decoded(StreamFormat::JsonLines, b"{\"a\":1}\n\n  \r\n{\"b\":\r}\r\n{\"cut\":", at_once);
            let found: Vec<_> = found.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(found, ["{\"a\":1}", "{\"b\":\r}\r"]);
        }
    }

    #[test]
    fn what_has_no_end_is_not_kept() {
        for (format, start) in [(StreamFormat::JsonLines, ""), (StreamFormat::Sse, "data: ")] {
            let mut decoder = Decoder::new(format);
            decoder.put(start.as_bytes());
            let ended = (0..=MESSAGE_BYTES_MAX / 1_024).find_map(|_| {
                decoder.put(&[b'a'; 1_024]);
                decoder.pull().err()
            });
            assert_eq!(ended, Some(Ended::TooLarge));
        }
        let mut decoder = Decoder::new(StreamFormat::Sse);
        decoder.put(format!("data: {}\n", "a".repeat(1_000)).repeat(300).as_bytes());
        assert_eq!(decoder.pull(), Err(Ended::TooLarge));
    }
}
