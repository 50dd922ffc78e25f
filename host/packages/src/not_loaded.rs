//! Why a package is not loaded, and what a client is told of it.

use std::fmt;

use heddle_kernel::http::error::Error;
use heddle_runtime::LoadError;

use crate::judge::conflict;

/// Why a package is not loaded.
#[derive(Debug)]
pub enum NotLoaded {
    /// It may not serve, or cannot.
    Refused(String),
    /// A fault of this machine that may pass, such as a full disk: the package is tried again.
    Passing(String),
    /// The database gives no answer: what serves stays.
    Unknown(heddle_store::Error),
}

impl From<heddle_store::Error> for NotLoaded {
    fn from(error: heddle_store::Error) -> Self {
        NotLoaded::Unknown(error)
    }
}

impl From<LoadError> for NotLoaded {
    fn from(error: LoadError) -> Self {
        if error.is_passing() {
            NotLoaded::Passing(error.to_string())
        } else {
            NotLoaded::Refused(error.to_string())
        }
    }
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLoaded::Refused(reason) | NotLoaded::Passing(reason) => f.write_str(reason),
            NotLoaded::Unknown(error) => write!(f, "the package cannot be recorded: {error}"),
        }
    }
}

impl From<NotLoaded> for Error {
    fn from(not_loaded: NotLoaded) -> Self {
        match not_loaded {
            NotLoaded::Refused(reason) => conflict(reason),
            NotLoaded::Passing(reason) => {
                tracing::error!("a package cannot be loaded now: {reason}");
                Error::Unavailable(reason)
            }
            NotLoaded::Unknown(error) => error.into(),
        }
    }
}
