//! Releases of a vendor's product: how their versions are compared, and what a description says of them.
//!
//! A version is numbers with `.` or `-` between them, such as `24.10.2` or `5.15.20.6`, and perhaps the revision of that
//! release behind a `_`: `26.1_4` is the revision 4 of 26.1, and comes before 26.1.2. A bound is written in the same way.
//! One without a revision is compared with as many numbers of a version as it has itself: `26.1` is the whole series 26.1.
//! One with a revision is compared with all of the release first, then with the revision. Numbers that are lacking count as
//! 0. A version with anything else in it, such as `SNAPSHOT` or `24.10.0-rc1`, comes neither before nor after another one:
//! only its whole text names it.

use std::cmp::Ordering;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest text of a bound.
const BOUND_CHARS_MAX: usize = 64;
/// Most entries of one list.
const ENTRIES_MAX: usize = 64;

/// The releases of a product that an adapter was made from and tested with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tested {
    /// The product, exactly as the device says it; absent where this holds for every product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    pub tested: Vec<Releases>,
}

/// One release, a series of them, or a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Releases {
    /// `24.10` is every release of that series; `SNAPSHOT` is that text alone.
    Of(String),
    /// From a release to another one.
    Range(Span),
}

/// Releases from one to another, with both; an end that is absent is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Span {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A version that can be compared.
struct Numbers {
    release: Vec<u64>,
    revision: Option<Vec<u64>>,
}

impl Numbers {
    /// The numbers of a version; none where it has anything else.
    fn of(version: &str) -> Option<Self> {
        let (release, revision) = match version.split_once('_') {
            Some((release, revision)) => (release, Some(parts(revision)?)),
            None => (version, None),
        };
        Some(Self { release: parts(release)?, revision })
    }
}

fn parts(text: &str) -> Option<Vec<u64>> {
    // A sign would be a number to `parse` too.
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    text.split(['.', '_', '-']).map(number).collect()
}

/// Compares a version with a bound, as far as the bound goes; none where one of them has more than numbers.
fn compare(version: &str, bound: &str) -> Option<Ordering> {
    let (mut version, mut bound) = (Numbers::of(version)?, Numbers::of(bound)?);
    let Some(revision) = bound.revision else {
        version.release.resize(bound.release.len(), 0);
        return Some(version.release.cmp(&bound.release));
    };
    let length = version.release.len().max(bound.release.len());
    version.release.resize(length, 0);
    bound.release.resize(length, 0);
    let mut own = version.revision.unwrap_or_default();
    own.resize(revision.len(), 0);
    Some(version.release.cmp(&bound.release).then(own.cmp(&revision)))
}

/// Whether a version lies between two bounds, both of them included; none where it cannot be compared with them.
pub fn is_between(version: &str, from: Option<&str>, to: Option<&str>) -> Option<bool> {
    let from = from.map_or(Some(true), |from| compare(version, from).map(Ordering::is_ge))?;
    let to = to.map_or(Some(true), |to| compare(version, to).map(Ordering::is_le))?;
    Some(from && to)
}

impl Releases {
    fn hold(&self, version: &str) -> bool {
        match self {
            Self::Of(text) => text == version || compare(version, text) == Some(Ordering::Equal),
            Self::Range(span) => {
                is_between(version, span.from.as_deref(), span.to.as_deref()).unwrap_or_default()
            }
        }
    }

    fn problem(&self) -> Option<String> {
        match self {
            Self::Of(text) => {
                let fits = (1..=BOUND_CHARS_MAX).contains(&text.chars().count());
                (!fits || text.chars().any(char::is_control)).then(|| {
                    format!(
                        "a release has 1 to {BOUND_CHARS_MAX} characters, none of them a control character"
                    )
                })
            }
            Self::Range(span) => span.problem(),
        }
    }
}

impl Span {
    /// The first thing that is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<String> {
        let ends = [&self.from, &self.to];
        if ends.iter().all(|end| end.is_none()) {
            return Some("a range of releases needs 'from' or 'to'".to_owned());
        }
        let is_bound = |end: &&String| end.chars().count() <= BOUND_CHARS_MAX && Numbers::of(end).is_some();
        if let Some(strange) = ends.into_iter().flatten().find(|end| !is_bound(end)) {
            let shown: String = strange.chars().take(BOUND_CHARS_MAX).collect();
            return Some(format!(
                "'{shown}' is no bound of releases; write numbers with '.', '_' or '-' between them, such as '24.10'"
            ));
        }
        let (Some(from), Some(to)) = (&self.from, &self.to) else { return None };
        (compare(from, to) == Some(Ordering::Greater))
            .then(|| format!("the releases from '{from}' to '{to}' are none"))
    }
}

/// What a description says of the version of a product: whether it was tested; none where it names no releases.
pub fn is_tested(releases: &[Tested], product: &str, version: &str) -> Option<bool> {
    if releases.iter().all(|entry| entry.tested.is_empty()) {
        return None;
    }
    Some(of_product(releases, product).any(|one| one.hold(version)))
}

/// The releases of a product that were tested, in words: `26.1, 26.7`, `8.4 to 9.1`; none where there are none.
pub fn tested_in_words(releases: &[Tested], product: &str) -> Option<String> {
    let named: Vec<String> = of_product(releases, product).map(ToString::to_string).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

fn of_product<'a>(releases: &'a [Tested], product: &'a str) -> impl Iterator<Item = &'a Releases> {
    let is_of = move |entry: &&Tested| entry.product.as_deref().is_none_or(|named| named == product);
    releases.iter().filter(is_of).flat_map(|entry| &entry.tested)
}

/// The first thing that is wrong with what a description says of its releases, if anything is.
pub(crate) fn problem(releases: &[Tested]) -> Option<String> {
    if releases.len() > ENTRIES_MAX || releases.iter().any(|entry| entry.tested.len() > ENTRIES_MAX) {
        return Some(format!("it names more than {ENTRIES_MAX} products, or releases of one"));
    }
    releases.iter().flat_map(|entry| &entry.tested).find_map(Releases::problem)
}

impl fmt::Display for Releases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(text) => f.write_str(text),
            Self::Range(span) => span.fmt(f),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => write!(f, "{from} to {to}"),
            (Some(from), None) => write!(f, "{from} and later"),
            (None, Some(to)) => write!(f, "{to} and earlier"),
            (None, None) => f.write_str("all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn releases(text: &Value) -> Vec<Tested> {
        serde_json::from_value(text.clone()).unwrap()
    }

    #[track_caller]
    fn check(tested: &Value, version: &str, expected: bool) {
        let releases = releases(&json!([{ "tested": [tested] }]));
        assert_eq!(is_tested(&releases, "any", version), Some(expected), "{tested} and {version}");
    }

    #[test]
    fn a_series_has_all_its_releases_and_no_other() {
        for (tested, version, expected) in [
            ("24.10", "24.10.2", true),
            ("24.10", "24.10", true),
            ("24.10", "24.1.10", false),
            ("24.10", "24.100", false),
            ("24.10.2", "24.10", false),
            ("24", "24.10.2", true),
            ("26.1", "26.1.2_3", true),
            ("26.1.2_3", "26.1.2_4", false),
            ("26.1_4", "26.1_4", true),
            ("26.1_4", "26.1.0_4", true),
            ("26.1_4", "26.1.4", false),
            ("26.1_4", "26.1", false),
            ("26.1.4", "26.1_4", false),
            ("26.1.0", "26.1_4", true),
            ("+10", "+10.1", false),
            ("10", "+10", false),
            ("10.1", "10.+1", false),
            ("26.1", "26.1_", false),
            ("26.1", "26.1_+4", false),
            ("5.15", "5.15.20.6", true),
            ("24.10", "24.10.0-rc1", false),
            ("24.10", "24.10-SNAPSHOT", false),
            ("24.10", "SNAPSHOT", false),
            ("24.10", "", false),
            ("SNAPSHOT", "SNAPSHOT", true),
            ("SNAPSHOT", "24.10.2", false),
            ("24.10.0-rc1", "24.10.0-rc1", true),
        ] {
            check(&json!(tested), version, expected);
        }
    }

    #[test]
    fn a_range_has_both_its_ends() {
        for (from, to, version, expected) in [
            (Some("8.4"), Some("9.1"), "8.3.9", false),
            (Some("8.4"), Some("9.1"), "8.4", true),
            (Some("8.4"), Some("9.1"), "8.4.1", true),
            (Some("8.4"), Some("9.1"), "9", true),
            (Some("8.4"), Some("9.1"), "9.1.3", true),
            (Some("8.4"), Some("9.1"), "9.2.0", false),
            (Some("8.4"), Some("9.1"), "10.0", false),
            (Some("8.4"), Some("9.1"), "9.0-beta", false),
            (Some("26.1.10"), None, "26.1", false),
            (Some("26.1.10"), None, "26.1.10_1", true),
            (Some("26.1.2"), None, "26.1_4", false),
            (Some("26.1_4"), None, "26.1_3", false),
            (Some("26.1_4"), None, "26.1_10", true),
            (Some("26.1_4"), None, "26.1.2", true),
            (Some("26.1_4"), None, "26.1.2_3", true),
            (None, Some("26.1_4"), "26.1", true),
            (None, Some("26.1_4"), "26.1.1", false),
            (None, Some("25.7"), "25.7.11", true),
            (None, Some("25.7"), "26.1", false),
        ] {
            check(&json!({ "from": from, "to": to }), version, expected);
        }
        assert_eq!(is_between("SNAPSHOT", Some("9"), None), None);
        assert_eq!(is_between("SNAPSHOT", None, None), Some(true));
    }

    #[test]
    fn a_product_is_judged_by_what_is_said_of_it() {
        let said = releases(&json!([
            { "product": "Edge", "tested": ["1", { "from": "3", "to": "4.2" }] },
            { "product": "Core", "tested": ["2"] },
            { "tested": ["9"] },
        ]));
        assert_eq!(is_tested(&said, "Edge", "1.5"), Some(true));
        assert_eq!(is_tested(&said, "Core", "1.5"), Some(false));
        assert_eq!(is_tested(&said, "Else", "9.1"), Some(true));
        assert_eq!(tested_in_words(&said, "Edge").as_deref(), Some("1, 3 to 4.2, 9"));
        assert_eq!(tested_in_words(&said[..2], "Else"), None);
        assert_eq!(is_tested(&said[..2], "Else", "1"), Some(false));
        for nothing in [json!([]), json!([{ "tested": [] }])] {
            assert_eq!(is_tested(&releases(&nothing), "Edge", "1"), None);
        }
    }

    #[test]
    fn what_is_no_release_is_refused() {
        let of = |tested: &Value| problem(&releases(&json!([{ "tested": [tested] }]))).unwrap_or_default();
        for (tested, said) in [
            (json!({}), "needs 'from' or 'to'"),
            (json!({ "from": "SNAPSHOT" }), "'SNAPSHOT' is no bound"),
            (json!({ "to": "" }), "'' is no bound"),
            (json!({ "from": "+10" }), "'+10' is no bound"),
            (json!({ "from": "9.1", "to": "8.4" }), "from '9.1' to '8.4' are none"),
            (json!(""), "1 to 64 characters"),
            (json!("a\nb"), "control character"),
        ] {
            assert!(of(&tested).contains(said), "{tested}: {}", of(&tested));
        }
        assert_eq!(of(&json!({ "from": "9.1", "to": "9" })), "", "9 is the whole of it");
        let many = releases(&json!([{ "tested": vec!["1"; ENTRIES_MAX + 1] }]));
        assert!(problem(&many).is_some());
    }
}
