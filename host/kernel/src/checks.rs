//! Collects everything that is wrong with a body.

use heddle_core::name::has_hidden;
use heddle_core::secret::Secret;

use crate::http::error::{Detail, Error};

/// Most characters of a name.
pub const NAME_CHARS_MAX: usize = 200;
/// Most characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 2000;
/// Most permissions and wildcards of an API key, an app or a stored role.
pub const SCOPES_MAX: usize = 32;
/// Most characters of each of them.
pub const SCOPE_CHARS_MAX: usize = 100;
/// Most characters of a search text.
const SEARCH_CHARS_MAX: usize = 200;

/// Collects what does not hold.
#[derive(Debug, Default)]
pub struct Checks(Vec<Detail>);

impl Checks {
    /// Notes a `value_error` at the field where the condition is false. The check goes on, and
    /// [`Checks::done`] reports everything at once.
    pub fn require(&mut self, holds: bool, field: &str, message: &str) {
        if !holds {
            self.0.push(Detail::new(field, message, "value_error"));
        }
    }

    /// Adds details that another check found and whose type is not `value_error`, such as the faults of a
    /// password.
    pub fn add(&mut self, details: Vec<Detail>) {
        self.0.extend(details);
    }

    /// Keeps the value, or notes what is wrong with it.
    pub fn keep<T: Default>(&mut self, field: &str, value: Result<T, String>) -> T {
        value.unwrap_or_else(|message| {
            self.0.push(Detail::new(field, message, "value_error"));
            T::default()
        })
    }

    /// A name for people, without the space around it.
    pub fn name(&mut self, field: &str, text: &str) -> String {
        let name = text.trim();
        let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
        self.require(fits, field, &format!("must have 1 to {NAME_CHARS_MAX} characters"));
        self.visible(field, name);
        name.to_owned()
    }

    /// A text that may have this many characters.
    pub fn chars(&mut self, field: &str, text: &str, max: usize) {
        self.require(text.chars().count() <= max, field, &too_many_chars(max));
    }

    /// A text for people that explains something.
    pub fn description(&mut self, text: Option<&str>) {
        self.chars("description", text.unwrap_or_default(), DESCRIPTION_CHARS_MAX);
    }

    /// Refuses characters that are invisible, or that move what is visible.
    pub(crate) fn visible(&mut self, field: &str, text: &str) {
        let message = "must have no control characters, direction marks or characters without width";
        self.require(!has_hidden(text), field, message);
    }

    /// Returns 422 with all details in the order in which they were noted, if there are any. Without this
    /// call nothing is refused.
    pub fn done(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::Validation(self.0)) }
    }
}

fn too_many_chars(max: usize) -> String {
    format!("must not have more than {max} characters")
}

/// Most characters of a secret that is only compared. Every secret that the service makes or keeps is shorter.
pub const PRESENTED_CHARS_MAX: usize = 4096;

/// Refuses a secret that is too long to equal a stored one.
pub fn refuse_long_secret(field: &str, secret: &Secret) -> Result<(), Error> {
    refuse_longer(field, secret.expose(), PRESENTED_CHARS_MAX)
}

/// Refuses a text that has more characters than it may have, where nothing else of the body is checked with it.
pub fn refuse_longer(field: &str, text: &str, max: usize) -> Result<(), Error> {
    if text.chars().count() > max { Err(Error::field(field, too_many_chars(max))) } else { Ok(()) }
}

/// A search text; `None` when there is nothing to search for.
pub fn search(text: Option<String>) -> Result<Option<String>, Error> {
    if text.as_ref().is_some_and(|text| text.chars().count() > SEARCH_CHARS_MAX) {
        return Err(Error::field("search", "search must not have more than 200 characters"));
    }
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_reported_together() {
        let mut checks = Checks::default();
        checks.name("name", " ");
        checks.require(false, "url", "must be a URL");
        assert_eq!(checks.name("title", " Head office "), "Head office");
        let Err(Error::Validation(details)) = checks.done() else { panic!("two things are wrong") };
        let fields: Vec<&str> = details.iter().map(|detail| detail.field.as_str()).collect();
        assert_eq!(fields, ["name", "url"]);
    }

    #[test]
    fn a_bound_counts_characters_and_is_named() {
        let mut checks = Checks::default();
        checks.chars("a", &"ä".repeat(3), 3);
        checks.chars("b", &"ä".repeat(4), 3);
        checks.description(None);
        let Err(Error::Validation(details)) = checks.done() else { panic!("one text is too long") };
        assert_eq!(details.len(), 1);
        assert_eq!((details[0].field.as_str(), details[0].message.contains('3')), ("b", true));
        assert!(refuse_longer("a", "äöü", 3).is_ok());
        assert!(refuse_longer("a", "äöüß", 3).is_err());
    }

    #[test]
    fn a_name_shows_all_that_it_holds() {
        for hidden in ["a\u{202e}b", "a\u{200b}b", "\u{feff}a", "a\u{2066}b", "a\u{7}b"] {
            let mut checks = Checks::default();
            checks.name("name", hidden);
            let Err(Error::Validation(details)) = checks.done() else { panic!("{hidden:?} is accepted") };
            assert!(details[0].message.contains("direction marks"), "{details:?}");
        }
    }

    #[test]
    fn an_empty_search_is_none_and_a_long_one_is_refused() {
        assert_eq!(search(Some("  ".to_owned())).unwrap(), None);
        assert_eq!(search(Some(" a_b% ".to_owned())).unwrap().as_deref(), Some("a_b%"));
        assert!(search(Some("x".repeat(201))).is_err());
    }
}
