//! What lists are sorted by: a word of the interface for each column that a caller may choose.

use std::borrow::Cow;
use std::marker::PhantomData;

use heddle_core::page::PageRequest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// A word of the interface, and the column or expression behind it.
#[derive(Debug)]
pub struct Key {
    word: &'static str,
    column: &'static str,
    /// Rows without a value stand at the end in both directions; by default the two databases sort them differently.
    can_be_null: bool,
}

impl Key {
    pub(crate) const fn of(word: &'static str, column: &'static str) -> Self {
        Self { word, column, can_be_null: false }
    }

    /// The word of a list that is in memory: no column stands behind it.
    pub const fn in_memory(word: &'static str) -> Self {
        Self { word, column: word, can_be_null: false }
    }

    pub(crate) const fn nullable(word: &'static str, column: &'static str) -> Self {
        Self { word, column, can_be_null: true }
    }
}

/// Rows whose lists callers may sort.
pub trait Sorted {
    const KEYS: &'static [Key];
    /// The word that holds where the caller names none; with `-` before it the greatest comes first.
    const DEFAULT: &'static str;
    /// Columns that tell rows with the same value apart, the row's id at the end.
    const LAST: &'static [&'static str];
}

/// The order of a list of `T`: `name` from the least to the greatest, `-name` from the greatest to the least.
pub struct Sort<T> {
    key: &'static Key,
    pub(crate) is_descending: bool,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Sort<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Sort<T> {}

impl<T> std::fmt::Debug for Sort<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_descending { "-" } else { "" }, self.key.word)
    }
}

impl<T: Sorted> Default for Sort<T> {
    fn default() -> Self {
        Self::parse(T::DEFAULT).expect("the default is one of the words")
    }
}

impl<T: Sorted> Sort<T> {
    fn parse(text: &str) -> Option<Self> {
        let (word, is_descending) = match text.strip_prefix('-') {
            Some(word) => (word, true),
            None => (text, false),
        };
        let key = T::KEYS.iter().find(|key| key.word == word)?;
        Some(Self { key, is_descending, of: PhantomData })
    }

    /// The default key in this direction.
    pub(crate) fn towards(is_ascending: bool) -> Self {
        Self { is_descending: !is_ascending, ..Self::default() }
    }

    /// The word, without a direction.
    pub fn word(&self) -> &'static str {
        self.key.word
    }

    /// From the least to the greatest.
    pub fn is_ascending(&self) -> bool {
        !self.is_descending
    }

    fn words() -> impl Iterator<Item = String> {
        T::KEYS.iter().flat_map(|key| [key.word.to_owned(), format!("-{}", key.word)])
    }

    /// What stands behind `ORDER BY`.
    pub(crate) fn order(&self) -> String {
        let direction = if self.is_descending { " DESC" } else { "" };
        let nulls = if self.key.can_be_null { " NULLS LAST" } else { "" };
        let mut order = format!("{}{direction}{nulls}", self.key.column);
        for column in T::LAST {
            order.push_str(", ");
            order.push_str(column);
            order.push_str(direction);
        }
        order
    }

    /// Column of the key, for a list that is walked along it.
    pub(crate) fn column(&self) -> &'static str {
        self.key.column
    }
}

impl<'de, T: Sorted> Deserialize<'de> for Sort<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let words: Vec<String> = Self::words().map(|word| format!("'{word}'")).collect();
            de::Error::custom(format!("must be one of {}", words.join(", ")))
        })
    }
}

impl<T: Sorted> JsonSchema for Sort<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Sort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::words().collect::<Vec<_>>() })
    }
}

/// A request for a page of a list, and the order of the list.
#[derive(Debug)]
pub struct InOrder<T> {
    pub(crate) request: PageRequest,
    pub(crate) sort: Sort<T>,
}

impl<T: Sorted> From<PageRequest> for InOrder<T> {
    fn from(request: PageRequest) -> Self {
        Self { request, sort: Sort::default() }
    }
}

impl<T: Sorted> InOrder<T> {
    /// In the order that the caller chose, if any.
    pub fn by(request: PageRequest, sort: Option<Sort<T>>) -> Self {
        Self { request, sort: sort.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row;

    impl Sorted for Row {
        const KEYS: &'static [Key] =
            &[Key::of("created_at", "r.created_at"), Key::nullable("seen_at", "r.seen_at")];
        const DEFAULT: &'static str = "-created_at";
        const LAST: &'static [&'static str] = &["r.seq", "r.id"];
    }

    #[track_caller]
    fn check(word: &str, order: &str) {
        let sort: Sort<Row> = serde_json::from_value(word.into()).unwrap();
        assert_eq!((sort.order().as_str(), format!("{sort:?}").as_str()), (order, word));
    }

    #[test]
    fn a_word_gives_an_order_that_tells_all_rows_apart() {
        check("created_at", "r.created_at, r.seq, r.id");
        check("-created_at", "r.created_at DESC, r.seq DESC, r.id DESC");
        check("-seen_at", "r.seen_at DESC NULLS LAST, r.seq DESC, r.id DESC");
        assert_eq!(Sort::<Row>::default().order(), "r.created_at DESC, r.seq DESC, r.id DESC");
    }

    #[test]
    fn another_word_is_refused_with_those_that_there_are() {
        for word in ["", "-", "--created_at", "Created_at", "id; DROP TABLE r"] {
            let refused = serde_json::from_value::<Sort<Row>>(word.into()).unwrap_err().to_string();
            assert!(
                refused.contains("must be one of 'created_at', '-created_at', 'seen_at', '-seen_at'"),
                "{refused}"
            );
        }
    }
}
