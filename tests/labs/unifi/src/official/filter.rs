//! The language of filters: `and(state.eq('ONLINE'),not(name.like('guest*')))`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reply::{Outcome, Refusal};

/// What a row has to be.
#[derive(Debug, PartialEq)]
pub(super) enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    /// A property, an operator, its values.
    Test(String, String, Vec<Word>),
}

/// A value of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Text(String),
    Number(f64),
    Flag(bool),
}

/// The properties that a list can be filtered by, with their type and operators.
type Properties = BTreeMap<String, (String, String)>;

/// Reads a filter, or says what is wrong with it and where.
pub(super) fn parse(text: &str, properties: &Properties) -> Outcome<Filter> {
    let mut reader = Reader { text, at: 0, properties };
    let filter = reader.filter()?;
    if reader.at < text.len() {
        return Err(Reader::refuse("unexpected input", reader.at));
    }
    Ok(filter)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    properties: &'a Properties,
}

impl Reader<'_> {
    fn refuse(detail: &str, at: usize) -> Refusal {
        let message = format!("failed to parse filter expression: {detail} at 1:{}", at + 1);
        Refusal::of(400, "api.request.invalid-filter", &message)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        let spaces = self.rest().len() - self.rest().trim_start().len();
        self.at += spaces;
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.skip();
        let is_there = self.rest().starts_with(wanted);
        if is_there {
            self.at += wanted.len_utf8();
        }
        is_there
    }

    fn expect(&mut self, wanted: char) -> Outcome<()> {
        if self.takes(wanted) { Ok(()) } else { Err(Self::refuse(&format!("'{wanted}' expected"), self.at)) }
    }

    fn name(&mut self) -> &str {
        self.skip();
        let start = self.at;
        let length = self
            .rest()
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
            .unwrap_or(self.rest().len());
        self.at += length;
        &self.text[start..start + length]
    }

    fn filter(&mut self) -> Outcome<Filter> {
        self.skip();
        let start = self.at;
        let name = self.name().to_owned();
        self.expect('(')?;
        match name.as_str() {
            "and" => Ok(Filter::And(self.several()?)),
            "or" => Ok(Filter::Or(self.several()?)),
            "not" => {
                let inner = self.filter()?;
                self.expect(')')?;
                Ok(Filter::Not(Box::new(inner)))
            }
            _ => self.test(&name, start),
        }
    }

    fn several(&mut self) -> Outcome<Vec<Filter>> {
        let mut found = vec![self.filter()?];
        while self.takes(',') {
            found.push(self.filter()?);
        }
        self.expect(')')?;
        Ok(found)
    }

    fn test(&mut self, name: &str, start: usize) -> Outcome<Filter> {
        let Some((property, operator)) = name.rsplit_once('.') else {
            return Err(Self::refuse(&format!("unknown filter property '{name}'"), start));
        };
        let Some((kind, operators)) = self.properties.get(property) else {
            return Err(Self::refuse(&format!("unknown filter property '{property}'"), start));
        };
        if !operators.split(' ').any(|own| own == operator) {
            let at = start + property.len() + 1;
            return Err(Self::refuse(&format!("'{operator}' is not allowed for '{property}'"), at));
        }
        let mut words = Vec::new();
        if !self.takes(')') {
            loop {
                let at = self.at;
                let word = self.word()?;
                let is_text = kind.contains("STRING") || kind.contains("UUID") || kind.contains("TIMESTAMP");
                if is_text != matches!(word, Word::Text(_)) {
                    return Err(Self::refuse(&format!("invalid value for '{property}'"), at));
                }
                words.push(word);
                if !self.takes(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        let needs_none = matches!(operator, "isNull" | "isNotNull" | "isEmpty");
        if words.is_empty() != needs_none {
            return Err(Self::refuse(&format!("wrong number of values for '{operator}'"), self.at));
        }
        Ok(Filter::Test(property.to_owned(), operator.to_owned(), words))
    }

    /// A text in single quotes, in which a quote is doubled; a number; a boolean.
    fn word(&mut self) -> Outcome<Word> {
        self.skip();
        if !self.rest().starts_with('\'') {
            let start = self.at;
            let length = self.rest().find([',', ')']).unwrap_or(self.rest().len());
            let bare = self.rest()[..length].trim().to_owned();
            self.at += length;
            return match bare.as_str() {
                "true" => Ok(Word::Flag(true)),
                "false" => Ok(Word::Flag(false)),
                _ => match bare.parse() {
                    Ok(number) => Ok(Word::Number(number)),
                    // Moments may stand without quotes.
                    Err(_) if bare.contains('T') || bare.contains('-') => Ok(Word::Text(bare)),
                    Err(_) => Err(Self::refuse("value expected", start)),
                },
            };
        }
        let mut text = String::new();
        let mut place = self.at + 1;
        loop {
            let Some(end) = self.text[place..].find('\'') else {
                return Err(Self::refuse("unterminated text", self.at));
            };
            text.push_str(&self.text[place..place + end]);
            place += end + 1;
            if !self.text[place..].starts_with('\'') {
                break;
            }
            text.push('\'');
            place += 1;
        }
        self.at = place;
        Ok(Word::Text(text))
    }
}

impl Filter {
    /// Whether a row of the list is what the filter wants.
    pub(super) fn matches(&self, row: &Value) -> bool {
        match self {
            Self::And(inner) => inner.iter().all(|filter| filter.matches(row)),
            Self::Or(inner) => inner.iter().any(|filter| filter.matches(row)),
            Self::Not(inner) => !inner.matches(row),
            Self::Test(property, operator, words) => {
                let value = property.split('.').try_fold(row, |value, name| value.get(name));
                test(value.filter(|value| !value.is_null()), operator, words)
            }
        }
    }
}

fn test(value: Option<&Value>, operator: &str, words: &[Word]) -> bool {
    let Some(value) = value else { return matches!(operator, "isNull" | "isEmpty" | "ne" | "notIn") };
    let first = words.first();
    let members = || value.as_array().into_iter().flatten();
    let contains = |word: &Word| members().any(|member| is(member, word));
    match operator {
        "isNotNull" => true,
        "isEmpty" => value.as_array().is_some_and(Vec::is_empty),
        "eq" => first.is_some_and(|word| is(value, word)),
        "ne" => !first.is_some_and(|word| is(value, word)),
        "in" => words.iter().any(|word| is(value, word)),
        "notIn" => !words.iter().any(|word| is(value, word)),
        "contains" => first.is_some_and(contains),
        "containsAny" => words.iter().any(contains),
        "containsAll" => words.iter().all(contains),
        "containsExactly" => words.iter().all(contains) && members().count() == words.len(),
        "like" => match (value.as_str(), first) {
            (Some(text), Some(Word::Text(pattern))) => is_like(pattern, text),
            _ => false,
        },
        "gt" | "ge" | "lt" | "le" => {
            first.and_then(|word| compare(value, word)).is_some_and(|order| match operator {
                "gt" => order.is_gt(),
                "ge" => order.is_ge(),
                "lt" => order.is_lt(),
                _ => order.is_le(),
            })
        }
        _ => false,
    }
}

fn is(value: &Value, word: &Word) -> bool {
    match (value, word) {
        (Value::String(text), Word::Text(word)) => text == word,
        (Value::Number(_), Word::Number(_)) => compare(value, word).is_some_and(std::cmp::Ordering::is_eq),
        (Value::Bool(flag), Word::Flag(word)) => flag == word,
        _ => false,
    }
}

/// Numbers by their size; versions and moments by their text.
fn compare(value: &Value, word: &Word) -> Option<std::cmp::Ordering> {
    match word {
        Word::Number(word) => value.as_f64()?.partial_cmp(word),
        Word::Text(word) => {
            let parts =
                |text: &str| text.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
            match (parts(value.as_str()?), parts(word)) {
                (Some(one), Some(other)) => Some(one.cmp(&other)),
                _ => Some(value.as_str()?.cmp(word)),
            }
        }
        Word::Flag(_) => None,
    }
}

/// Whether a text has the form of a pattern: `*` is any run, `.` one character.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(rest, &text[at..]))
        }
        Some(letter) => {
            let mut own = text.chars();
            own.next().is_some_and(|own| letter == '.' || own == letter)
                && is_like(letters.as_str(), own.as_str())
        }
    }
}
