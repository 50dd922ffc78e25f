//! Reads a text byte by byte with its escapes decoded, in one pass and without a copy.

/// Which escapes are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Plain,
    /// `\n`, `\/`, `\u00e4` and the like.
    Json,
    /// `%c3%a4`.
    Url,
    /// Those of JSON, and in what they decode to those of URLs.
    Both,
}

/// A byte of the decoded text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    pub(super) value: u8,
    /// Where in the text its escape begins.
    pub(super) begin: usize,
}

/// How far a text is read. Each step looks at 36 bytes of the text at most: three characters in JSON.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    view: View,
    at: usize,
    /// Bytes of a character that was decoded, and how many of them were given.
    ready: [u8; 4],
    length: usize,
    given: usize,
    begin: usize,
}

impl Reader {
    pub(super) fn new(view: View) -> Self {
        Self { view, at: 0, ready: [0; 4], length: 0, given: 0, begin: 0 }
    }

    /// A space may stand as `+`, so both are read as one.
    pub(super) fn fold(byte: u8) -> u8 {
        if byte == b'+' { b' ' } else { byte }
    }

    /// Behind everything that was given.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn next(&mut self, text: &[u8]) -> Option<Decoded> {
        count();
        let first = self.unescaped(text)?;
        let is_url = matches!(self.view, View::Url | View::Both);
        let value = if is_url && first.value == b'%' { self.percent(text) } else { None };
        Some(Decoded { value: Self::fold(value.unwrap_or(first.value)), begin: first.begin })
    }

    /// The byte that two hex digits stand for, which are taken then.
    fn percent(&mut self, text: &[u8]) -> Option<u8> {
        let mut ahead = self.clone();
        let high = char::from(ahead.unescaped(text)?.value).to_digit(16)?;
        let low = char::from(ahead.unescaped(text)?.value).to_digit(16)?;
        *self = ahead;
        u8::try_from(high * 16 + low).ok()
    }

    /// The next byte with escapes of JSON decoded, where they are.
    fn unescaped(&mut self, text: &[u8]) -> Option<Decoded> {
        if self.given < self.length {
            let value = self.ready[self.given];
            self.given += 1;
            return Some(Decoded { value, begin: self.begin });
        }
        let value = *text.get(self.at)?;
        self.begin = self.at;
        self.at += 1;
        if value == b'\\'
            && matches!(self.view, View::Json | View::Both)
            && let Some((decoded, length)) = json_escape(&text[self.at..])
        {
            self.at += length;
            self.length = decoded.encode_utf8(&mut self.ready).len();
            self.given = 1;
            return Some(Decoded { value: self.ready[0], begin: self.begin });
        }
        Some(Decoded { value, begin: self.begin })
    }
}

/// The character that is written behind a backslash, and in how many bytes.
fn json_escape(text: &[u8]) -> Option<(char, usize)> {
    let short = match text.first()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((short, 1))
}

fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let first = unit(text.get(1..5)?)?;
    if let Some(Ok(found)) = char::decode_utf16([first]).next() {
        return Some((found, 5));
    }
    let pair = text.get(5..7).filter(|begin| *begin == b"\\u").and_then(|_| unit(text.get(7..11)?))?;
    let found = char::decode_utf16([first, pair]).next()?.ok()?;
    Some((found, 11))
}

fn unit(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |sum, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(sum << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts the steps of all readers, in tests.
#[inline]
fn count() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Steps that this work took.
#[cfg(test)]
pub(super) fn counted(work: impl FnOnce()) -> usize {
    STEPS.with(|steps| steps.set(0));
    work();
    STEPS.with(std::cell::Cell::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(view: View, text: &str, expected: &str) {
        let (mut reader, mut read) = (Reader::new(view), Vec::new());
        while let Some(byte) = reader.next(text.as_bytes()) {
            read.push(byte.value);
        }
        assert_eq!(String::from_utf8_lossy(&read), expected);
        assert_eq!(reader.at(), text.len());
    }

    #[test]
    fn each_view_decodes_its_escapes_and_leaves_the_rest() {
        let text = r"a+b\\/\u00e4\ud83d\udd11\ud83d\x%41%c3%A4%4\";
        check(View::Plain, text, r"a b\\/\u00e4\ud83d\udd11\ud83d\x%41%c3%A4%4\");
        check(View::Json, text, "a b\\/\u{e4}\u{1f511}\\ud83d\\x%41%c3%A4%4\\");
        check(View::Url, text, &[r"a b\\/\u00e4\ud83d\udd11\ud83d\xA", "\u{e4}", r"%4\"].concat());
        check(View::Both, text, "a b\\/\u{e4}\u{1f511}\\ud83d\\xA\u{e4}%4\\");
        check(View::Both, r"\u0025\u0034\u0031", "A");
    }

    #[test]
    fn a_byte_begins_where_its_escape_does() {
        let mut reader = Reader::new(View::Both);
        let text = br"x\u00e4%41";
        let begins: Vec<usize> = std::iter::from_fn(|| reader.next(text).map(|byte| byte.begin)).collect();
        assert_eq!(begins, [0, 1, 1, 7]);
    }
}
