//! What a document may be: its size, its depth, and problems that name their place. Pure.

use heddle_kernel::http::error::{Detail, Error};

/// Most bytes of a document, written or read: what is exported can be planned again.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Most levels of maps and lists.
pub(crate) const DEPTH_MAX: usize = 16;
/// Most values of a document, however small they are.
pub(crate) const VALUES_MAX: usize = 100_000;
/// Most changes that one document stages.
pub(crate) const CHANGES_MAX: usize = 50;
/// Most problems that one answer names.
pub(crate) const PROBLEMS_MAX: usize = 50;
/// Most bytes of a key: paths repeat keys.
const KEY_BYTES_MAX: usize = 1_024;

/// Refuses a key that is too long.
pub(crate) fn key_is_short(key: &str) -> Result<(), String> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let begin: String = key.chars().take(40).collect();
    Err(format!("the key '{begin}…' has more than {KEY_BYTES_MAX} bytes"))
}

/// What is wrong at one place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// JSON pointer of the place.
    pub(crate) path: String,
    pub(crate) message: String,
    /// Such as `unknown_field`.
    pub(crate) kind: &'static str,
}

impl Problem {
    pub(crate) fn at(path: impl Into<String>, message: impl Into<String>, kind: &'static str) -> Self {
        Self { path: path.into(), message: message.into(), kind }
    }
}

/// A place one level deeper.
pub(crate) fn below(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// 422 that names each place.
pub(crate) fn refused(problems: &[Problem]) -> Error {
    let detail = |problem: &Problem| {
        let field = if problem.path.is_empty() { "body" } else { &problem.path };
        Detail::new(field, &problem.message, problem.kind)
    };
    Error::Validation(problems.iter().take(PROBLEMS_MAX).map(detail).collect())
}

/// Counts values and levels while a document is read.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    values: usize,
}

impl Meter {
    /// Counts one value at a depth.
    pub(crate) fn count(&mut self, depth: usize, path: &str) -> Result<(), Problem> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(Problem::at(
                path,
                format!("the document has more than {VALUES_MAX} values"),
                "too_large",
            ));
        }
        if depth > DEPTH_MAX {
            return Err(Problem::at(
                path,
                format!("the document is deeper than {DEPTH_MAX} levels"),
                "too_deep",
            ));
        }
        Ok(())
    }
}
