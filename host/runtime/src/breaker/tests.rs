use super::*;

const FAILED: Verdict = Verdict::Failed { points: 1, abi: false };

struct Site {
    clock: Clock,
    breaker: Arc<Breaker>,
    org: OrgId,
    controller: ControllerId,
}

fn site() -> Site {
    let clock = Clock::default();
    let breaker = Breaker::new("acme 1.0.0".to_owned(), clock.clone());
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
fn three_suspensions_of_the_version_in_an_hour_quarantine_it() {
    let site = site();
    let abi = Verdict::Failed { points: 3, abi: true };
    for _ in 0..3 {
        // Many controllers, so that the version is what opens.
        for _ in 0..7 {
            site.breaker.admit(site.org, site.clock.new_id()).unwrap().settle(abi);
        }
        site.advance(300);
    }
    assert!(site.breaker.is_quarantined());
    site.advance(24 * 3_600);
    assert!(site.call(Verdict::Sound).is_err());
    site.breaker.release();
    assert!(site.call(Verdict::Sound).is_ok());
}
