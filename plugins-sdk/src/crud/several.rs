//! What became of several requests of one reading, of which some may fail.

use crate::{Completeness, Fault};

/// Whether this device, version or licence does not have that part of the vendor's API, or the object that it is about.
pub(crate) fn is_not_offered(fault: &Fault) -> bool {
    matches!(fault, Fault::Unsupported(_) | Fault::NotFound(_))
}

/// How much of a list is known where a fault hides a part of it.
pub(crate) fn without(fault: &Fault) -> Completeness {
    if matches!(fault, Fault::Denied(_)) { Completeness::RightsLimited } else { Completeness::Partial }
}

/// How much of a list is known that consists of two parts.
pub(crate) fn together(first: Completeness, second: Completeness) -> Completeness {
    if matches!(first, Completeness::Complete) { second } else { first }
}

/// The answers so far. What is not offered is nothing that is lacking.
#[derive(Debug, Default)]
pub(crate) struct Several {
    has_answer: bool,
    /// The first fault that is no part of the API that is not offered.
    failure: Option<Fault>,
    not_offered: Option<Fault>,
    is_denied_only: bool,
}

impl Several {
    /// What was answered; none where the request failed, which is noted.
    pub(crate) fn take<T>(&mut self, answer: Result<T, Fault>) -> Option<T> {
        match answer {
            Ok(found) => {
                self.has_answer = true;
                return Some(found);
            }
            Err(fault) if is_not_offered(&fault) => drop(self.not_offered.get_or_insert(fault)),
            Err(fault) => {
                let is_denied = matches!(fault, Fault::Denied(_));
                self.is_denied_only = is_denied && (self.failure.is_none() || self.is_denied_only);
                self.failure.get_or_insert(fault);
            }
        }
        None
    }

    /// Whether the device has any of what was asked for.
    pub(crate) fn is_offered(&self) -> bool {
        self.has_answer || self.failure.is_some() || self.not_offered.is_none()
    }

    pub(crate) fn complete(&self) -> Completeness {
        match &self.failure {
            None => Completeness::Complete,
            Some(_) if self.is_denied_only => Completeness::RightsLimited,
            Some(_) => Completeness::Partial,
        }
    }

    /// The fault where nothing was answered. One that hides something comes before one that says that nothing is there.
    pub(crate) fn fault(self) -> Option<Fault> {
        if self.has_answer { None } else { self.failure.or(self.not_offered) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault;

    fn of(answers: Vec<Result<u8, Fault>>) -> (Vec<u8>, Several) {
        let mut several = Several::default();
        let found = answers.into_iter().filter_map(|answer| several.take(answer)).collect();
        (found, several)
    }

    #[test]
    fn fault_that_hides_something_comes_before_one_of_what_is_not_there() {
        let (_, several) = of(vec![Err(fault::unsupported("no")), Err(fault::timeout("late"))]);
        assert!(several.is_offered() && matches!(several.complete(), Completeness::Partial));
        assert!(matches!(several.fault(), Some(Fault::Timeout(_))));
        let (_, several) = of(vec![Err(fault::unsupported("no")), Err(fault::not_found("none"))]);
        assert!(!several.is_offered() && matches!(several.complete(), Completeness::Complete));
        assert!(matches!(several.fault(), Some(Fault::Unsupported(_))));
    }

    #[test]
    fn answers_are_kept_beside_faults() {
        let (found, several) = of(vec![Err(fault::denied("no")), Ok(1), Err(fault::not_found("none"))]);
        assert_eq!(found, [1]);
        assert!(matches!(several.complete(), Completeness::RightsLimited) && several.fault().is_none());
        for order in [0, 1] {
            let mut answers = vec![Err(fault::denied("no")), Err(fault::timeout("late"))];
            answers.rotate_left(order);
            assert!(matches!(of(answers).1.complete(), Completeness::Partial));
        }
        assert!(of(Vec::new()).1.is_offered() && of(Vec::new()).1.fault().is_none());
    }
}
