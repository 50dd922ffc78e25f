//! Texts of scripts: statements, words and quotes.

/// Depth within quotes, brackets and braces.
#[derive(Default)]
struct Depth {
    is_quoted: bool,
    is_escaped: bool,
    open: i32,
}

impl Depth {
    /// Takes the next character, and says whether it is outside of everything.
    fn is_outside(&mut self, c: char) -> bool {
        let was_outside = !self.is_quoted && self.open == 0;
        if self.is_escaped {
            self.is_escaped = false;
            return false;
        }
        match c {
            '\\' => self.is_escaped = true,
            '"' => self.is_quoted = !self.is_quoted,
            '[' | '{' | '(' if !self.is_quoted => self.open += 1,
            ']' | '}' | ')' if !self.is_quoted => self.open -= 1,
            _ => {}
        }
        was_outside && !self.is_quoted
    }
}

/// The statements of a script: lines, and parts of lines between semicolons. A backslash at its end continues a line.
pub(crate) fn statements(source: &str) -> Vec<String> {
    let joined = joined_lines(source);
    let mut out = Vec::new();
    let mut current = String::new();
    let mut depth = Depth::default();
    let mut in_comment = false;
    for c in joined.chars() {
        if in_comment {
            in_comment = c != '\n';
            if in_comment {
                continue;
            }
        }
        if c == '#' && current.trim().is_empty() && depth.open == 0 && !depth.is_quoted {
            in_comment = true;
            continue;
        }
        if depth.is_outside(c) && (c == '\n' || c == ';') {
            out.push(std::mem::take(&mut current));
        } else {
            current.push(c);
        }
    }
    out.push(current);
    out.retain(|statement| !statement.trim().is_empty());
    out
}

/// Lines that end with a backslash go on with the next one, whose first blanks do not count.
fn joined_lines(source: &str) -> String {
    let mut out = String::new();
    let mut continues = false;
    for line in source.replace("\r\n", "\n").split('\n') {
        let line = if continues { line.trim_start() } else { line };
        continues = line.ends_with('\\') && !line.ends_with("\\\\");
        if continues {
            out.push_str(&line[..line.len() - 1]);
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The words of a statement, with their quotes and brackets.
pub(crate) fn words(statement: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut current = String::new();
    let mut depth = Depth::default();
    for c in statement.trim().chars() {
        if depth.is_outside(c) && c.is_whitespace() {
            if !current.is_empty() {
                out.push(std::mem::take(&mut current));
            }
        } else {
            current.push(c);
        }
    }
    if !current.is_empty() {
        out.push(current);
    }
    out
}

/// The text within one pair of delimiters around a whole word.
pub(crate) fn within(word: &str, open: char, close: char) -> Option<&str> {
    word.strip_prefix(open)?.strip_suffix(close)
}

/// A text as a script writes it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:/*,!@+%<>".contains(c));
    if is_plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' | '$' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What an escape within quotes stands for, and how many characters it has behind the backslash.
pub(crate) fn escape(rest: &[char]) -> (char, usize) {
    match rest {
        ['n', ..] => ('\n', 1),
        ['r', ..] => ('\r', 1),
        ['t', ..] => ('\t', 1),
        ['_', ..] => (' ', 1),
        [a, b, ..]
            if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() && (a.is_ascii_digit() || a.is_uppercase()) =>
        {
            let code = a.to_digit(16).unwrap_or(0) * 16 + b.to_digit(16).unwrap_or(0);
            (char::from_u32(code).unwrap_or(' '), 2)
        }
        [c, ..] => (*c, 1),
        [] => ('\\', 0),
    }
}
