//! Counts tries to log in, by how they ended.

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::metrics::Families;
use prometheus::IntCounterVec;

heddle_core::words! {
    /// How a try to log in ended.
    pub enum LoginOutcome {
        Success = "success",
        /// Unknown name, wrong password, or a disabled account.
        Refused = "refused",
        Locked = "locked",
        /// It could not be checked.
        Error = "error",
    }
}

/// Counters of logins.
pub(super) struct Logins(IntCounterVec);

impl Logins {
    pub(super) fn new(families: &Families<'_>) -> Self {
        let outcomes = LoginOutcome::ALL.iter().map(|outcome| outcome.as_str());
        let help = "Tries to log in with a password.";
        Self(families.counters_of("heddle_logins_total", help, "outcome", outcomes))
    }
}

/// Counts a try to log in, by any way.
pub fn count<T>(app: &App, result: &Result<T, Error>) {
    let outcome = match result {
        Ok(_) => LoginOutcome::Success,
        Err(Error::Unauthenticated(_) | Error::Refused { .. }) => LoginOutcome::Refused,
        Err(Error::Locked { .. }) => LoginOutcome::Locked,
        Err(_) => LoginOutcome::Error,
    };
    app.part::<Logins>().0.with_label_values(&[outcome.as_str()]).inc();
}
