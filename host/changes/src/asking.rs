//! What a step of a run asks to be staged, as far as it tells one request from another.

use heddle_core::ControllerId;
use heddle_core::change::Operation;
use heddle_kernel::http::error::Error;
use heddle_store::changes::ChangeRow;

/// A feature of a controller, and what is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asking {
    pub(super) controller: ControllerId,
    pub(super) feature: String,
    pub(super) operation: Operation,
}

impl Asking {
    fn of(row: &ChangeRow) -> Self {
        Self { controller: row.controller_id, feature: row.feature.clone(), operation: row.operation }
    }

    /// The change that the step has staged before, where it is what the step asks for.
    ///
    /// # Errors
    /// A conflict where the step has staged something else: that change is not the answer to this request.
    pub(super) fn answered_by(&self, staged: ChangeRow) -> Result<ChangeRow, Error> {
        self.require_same(&Self::of(&staged))?;
        Ok(staged)
    }

    fn require_same(&self, staged: &Self) -> Result<(), Error> {
        if self == staged {
            return Ok(());
        }
        Err(Error::Conflict {
            kind: "staged_otherwise",
            message: format!(
                "this step has staged '{} {}' at controller {} before, and asks for '{} {}' at controller {} now; a new run \
                stages it",
                staged.operation,
                staged.feature,
                staged.controller,
                self.operation,
                self.feature,
                self.controller
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_step_is_answered_with_the_change_that_it_asks_for_and_no_other() {
        let clock = Clock::default();
        let staged = Asking {
            controller: clock.new_id(),
            feature: "acme.rule".to_owned(),
            operation: Operation::Create,
        };
        assert!(staged.require_same(&staged.clone()).is_ok());
        for other in [
            Asking { controller: clock.new_id(), ..staged.clone() },
            Asking { feature: "acme.zone".to_owned(), ..staged.clone() },
            Asking { operation: Operation::Delete, ..staged.clone() },
        ] {
            let refused = other.require_same(&staged).unwrap_err().to_string();
            assert!(refused.contains("has staged 'create acme.rule'"), "{refused}");
        }
    }
}
