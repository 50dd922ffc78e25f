use super::*;

const FAILED: Verdict = Verdict::Failed { points: 1, blame: Blame::Component };
const BROKEN: Verdict = Verdict::Failed { points: 3, blame: Blame::Border };
const TOO_LARGE: Verdict = Verdict::Failed { points: 1, blame: Blame::Target };

struct Site {
    clock: Clock,
    breaker: Arc<Breaker>,
    org: OrgId,
    controller: ControllerId,
}

fn site() -> Site {
    let clock = Clock::default();
    let breaker = Breaker::new("acme 1.0.0".to_owned(), Peers::Controllers, clock.clone());
    Site { breaker, org: clock.new_id(), controller: clock.new_id(), clock }
}

impl Site {
    fn call(&self, verdict: Verdict) -> Result<(), u64> {
        self.breaker.admit(self.org, self.controller).map(|pass| pass.settle(verdict))
    }

    fn break_it(&self) {
        while self.call(FAILED).is_ok() {}
    }

    fn advance(&self, secs: i64) {
        self.clock.advance(TimeDelta::seconds(secs));
    }
}

#[test]
fn five_failures_suspend_this_controller_and_no_other() {
    let site = site();
    for _ in 0..5 {
        site.call(FAILED).unwrap();
    }
    assert!((29..=31).contains(&site.call(FAILED).unwrap_err()));
    assert!(site.breaker.admit(site.org, site.clock.new_id()).is_ok());
}

#[test]
fn failures_apart_do_not_suspend() {
    let site = site();
    for _ in 0..20 {
        site.call(FAILED).unwrap();
        site.advance(100);
    }
}

#[test]
fn one_probe_closes_it_and_a_failed_probe_doubles_the_wait() {
    let site = site();
    site.break_it();
    site.advance(31);
    let probe = site.breaker.admit(site.org, site.controller).unwrap();
    assert_eq!(site.breaker.admit(site.org, site.controller).err(), Some(1));
    probe.settle(FAILED);
    assert!((59..=61).contains(&site.call(FAILED).unwrap_err()));
    site.advance(61);
    site.call(Verdict::Sound).unwrap();
    site.call(FAILED).unwrap();
    site.call(FAILED).unwrap();
}

#[test]
fn a_cancelled_probe_makes_room_for_the_next() {
    let site = site();
    site.break_it();
    site.advance(31);
    drop(site.breaker.admit(site.org, site.controller).unwrap());
    assert!(site.breaker.admit(site.org, site.controller).is_ok());
}

#[test]
fn three_failing_organisations_suspend_the_version() {
    let site = site();
    let healthy = site.clock.new_id();
    drop(site.breaker.admit(healthy, site.clock.new_id()).unwrap());
    for _ in 0..3 {
        let tenant = Site {
            clock: site.clock.clone(),
            breaker: Arc::clone(&site.breaker),
            org: site.clock.new_id(),
            controller: site.clock.new_id(),
        };
        tenant.break_it();
    }
    assert!(site.breaker.admit(healthy, site.clock.new_id()).is_err());
}

#[test]
fn one_organisation_with_a_bad_device_keeps_the_version_for_its_other_devices() {
    let site = site();
    site.break_it();
    assert!(site.breaker.admit(site.org, site.clock.new_id()).is_ok());
}

#[test]
fn one_organization_alone_never_suspends_the_version() {
    let site = site();
    for _ in 0..100 {
        // Many controllers, and no other organization has called it.
        site.breaker.admit(site.org, site.clock.new_id()).unwrap().settle(BROKEN);
        let controller = site.clock.new_id();
        while let Ok(pass) = site.breaker.admit(site.org, controller) {
            pass.settle(FAILED);
        }
    }
    assert!(site.breaker.admit(site.clock.new_id(), site.clock.new_id()).is_ok());
}

#[test]
fn what_devices_decide_suspends_their_controllers_and_nothing_else() {
    let site = site();
    for _ in 0..10 {
        let (org, controller) = (site.clock.new_id(), site.clock.new_id());
        for _ in 0..5 {
            site.breaker.admit(org, controller).unwrap().settle(TOO_LARGE);
        }
        assert!(site.breaker.admit(org, controller).is_err());
    }
    assert!(site.call(Verdict::Sound).is_ok());
}

#[test]
fn what_is_under_way_passes_a_suspension_and_a_quarantine() {
    let site = site();
    site.break_it();
    let pass = site.breaker.admit_under_way(site.org, site.controller);
    pass.settle(FAILED);
    assert!(site.call(FAILED).is_err());
    quarantine(&site);
    site.breaker.admit_under_way(site.org, site.controller).settle(Verdict::Sound);
    assert!(site.breaker.standing().is_quarantined);
}

#[test]
fn a_call_under_way_is_not_the_probe() {
    let site = site();
    site.break_it();
    site.advance(31);
    let probe = site.breaker.admit(site.org, site.controller).unwrap();
    drop(site.breaker.admit_under_way(site.org, site.controller));
    assert_eq!(site.breaker.admit(site.org, site.controller).err(), Some(1));
    probe.settle(Verdict::Sound);
}

/// Breaks its border at three organizations, three times.
fn quarantine(site: &Site) {
    for _ in 0..3 {
        for _ in 0..3 {
            let org = site.clock.new_id();
            for _ in 0..3 {
                // The last one opens it.
                let Ok(pass) = site.breaker.admit(org, site.clock.new_id()) else { continue };
                pass.settle(BROKEN);
            }
        }
        site.advance(300);
    }
}

#[test]
fn three_suspensions_of_the_version_in_an_hour_quarantine_it() {
    let site = site();
    quarantine(&site);
    assert!(site.breaker.standing().is_quarantined);
    site.advance(24 * 3_600);
    assert!(site.call(Verdict::Sound).is_err());
    assert!(!site.breaker.release_as_of(site.clock.now() - TimeDelta::days(2)), "it was suspended since");
    assert!(site.breaker.release_as_of(site.clock.now()));
    assert!(!site.breaker.release_as_of(site.clock.now()), "it is released already");
    assert!(site.call(Verdict::Sound).is_ok());
    quarantine(&site);
    site.breaker.release();
    assert!(site.call(Verdict::Sound).is_ok());
    assert_eq!(site.breaker.standing(), Standing { is_quarantined: false, suspended_until: None });
}
