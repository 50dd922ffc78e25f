//! The uploads that this process receives now: few at a time, so that slow clients keep places free for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heddle_core::OrgId;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;

/// Uploads of an organization at once.
const UPLOADS_OF_ORG_MAX: usize = 4;
/// Uploads to a process at once.
const UPLOADS_MAX: usize = 32;

/// How many uploads of each organization are under way; holds no zeros.
#[derive(Debug, Default, Clone)]
pub(crate) struct Uploads(Arc<Mutex<HashMap<OrgId, usize>>>);

/// An upload that is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Upload {
    all: Uploads,
    org: OrgId,
}

impl Uploads {
    /// Returns the uploads of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Begins one, if there is a place for it.
    pub(super) fn begin(&self, org: OrgId) -> Result<Upload, Error> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_org = under_way.get(&org).copied().unwrap_or(0);
        if of_org >= UPLOADS_OF_ORG_MAX || under_way.values().sum::<usize>() >= UPLOADS_MAX {
            return Err(Error::Conflict {
                kind: "limit_reached",
                message: "other uploads are under way; try again when one has ended".to_owned(),
            });
        }
        under_way.insert(org, of_org + 1);
        Ok(Upload { all: self.clone(), org })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut under_way = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = under_way.remove(&self.org).unwrap_or(0).saturating_sub(1);
        if left > 0 {
            under_way.insert(self.org, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn an_organization_has_its_share_of_the_uploads_and_all_have_an_end() {
        let (clock, all) = (Clock::default(), Uploads::default());
        let org: OrgId = clock.new_id();
        let mut held: Vec<Upload> = (0..UPLOADS_OF_ORG_MAX).map(|_| all.begin(org).unwrap()).collect();
        let Err(Error::Conflict { kind, message }) = all.begin(org) else { panic!("one too many") };
        assert_eq!(kind, "limit_reached");
        assert!(message.contains("other uploads are under way"), "{message}");
        held.extend((held.len()..UPLOADS_MAX).map(|_| all.begin(clock.new_id()).unwrap()));
        assert!(all.begin(clock.new_id()).is_err(), "the process has no place");
        held.remove(0);
        assert!(all.begin(org).is_ok(), "an upload that ended gives its place back");
        held.clear();
        assert!(all.0.lock().unwrap().is_empty());
    }
}
