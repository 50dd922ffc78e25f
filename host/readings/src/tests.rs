use heddle_core::Clock;
use heddle_core::adapter::DeviceStatus;
use serde_json::json;

use super::*;

fn target(clock: &Clock) -> ControllerTarget {
    ControllerTarget {
        id: clock.new_id(),
        org_id: clock.new_id(),
        site_id: clock.new_id(),
        name: "edge".to_owned(),
        vendor: "acme".to_owned(),
        url: "https://192.0.2.1".to_owned(),
        tls: json!({}),
        settings: json!({}),
        status: DeviceStatus::Online,
        product: None,
        firmware: None,
        allowed_release: None,
        sync_interval_secs: 60,
        credential_id: clock.new_id(),
        credential_version: 1,
    }
}

fn resting(slots: &Arc<Slots>) -> usize {
    slots.except(Seat::WHOLE, Instant::now()).controllers.len()
}

#[test]
fn what_is_not_claimed_does_not_rest() {
    let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
    let place = || {
        let controller = target(&clock);
        let slot = slots.take(controller.id, controller.org_id, Seat::WHOLE).unwrap();
        Placed { controller, scope: Scope::Whole, slot }
    };
    let placed = vec![place(), place()];
    let first = placed[0].controller.id;
    let begun = of_claimed(placed, Ok(HashSet::from([first]))).unwrap();
    assert_eq!((begun.len(), begun[0].controller.id, resting(&slots)), (1, first, 1));
    begun.into_iter().for_each(|one| one.slot.settle());
    assert!(of_claimed(vec![place(), place()], Err(Error::internal("deadlock"))).is_err());
    assert_eq!(resting(&slots), 0, "all of them are due at the next look");
}
