use chrono::TimeDelta;
use heddle_core::adapter::Completeness;
use heddle_core::vlan::VlanFault;

use super::*;
use crate::model_readings::{self, Row};
use crate::testing::{World, on_both};
use crate::vlan_drift::{self, VlanDrift};

fn brain<'a>(world: &World, limb_ids: Option<&'a [ControllerId]>) -> NewBrain<'a> {
    NewBrain {
        site_id: world.site,
        org_id: world.org,
        controller_id: world.controller,
        limb_ids,
        on_drift: OnDrift::Report,
        set_by: world.user,
        now: world.clock.now(),
    }
}

on_both! {
    async fn a_brain_is_set_anew_and_taken_away(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let other: ControllerId = world.clock.new_id();
        crate::controllers::insert(&mut tx, &world.new_controller(other, "core")).await.unwrap();
        assert_eq!(find(&mut tx, &world.scope(), world.site).await.unwrap(), None);
        set(&mut tx, &brain(&world, None)).await.unwrap();
        note_read(&mut tx, world.site, world.clock.now()).await.unwrap();
        let first = find(&mut tx, &world.scope(), world.site).await.unwrap().unwrap();
        assert_eq!((first.controller_id, first.revision, first.limb_ids.as_ref()), (world.controller, 1, None));
        set(&mut tx, &NewBrain { on_drift: OnDrift::Stage, ..brain(&world, Some(&[other])) }).await.unwrap();
        let second = lock(&mut tx, &world.scope(), world.site).await.unwrap().unwrap();
        assert_eq!((second.revision, second.limb_ids, second.on_drift), (2, Some(vec![other]), OnDrift::Stage));
        assert_eq!(second.read_at, first.read_at, "the same controller was read");
        set(&mut tx, &NewBrain { controller_id: other, ..brain(&world, None) }).await.unwrap();
        let third = find(&mut tx, &world.scope(), world.site).await.unwrap().unwrap();
        assert_eq!((third.controller_id, third.read_at), (other, None), "nothing was read of this one");
        assert_eq!(of_controller(&mut tx, other).await.unwrap().len(), 1);
        assert!(of_controller(&mut tx, world.controller).await.unwrap().is_empty());
        assert!(remove(&mut tx, world.site).await.unwrap() && !remove(&mut tx, world.site).await.unwrap());
    }

    async fn a_site_is_due_when_something_was_read_since(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        set(&mut tx, &brain(&world, None)).await.unwrap();
        let now = world.clock.now();
        assert_eq!(due(&mut tx, now, 10).await.unwrap().len(), 1, "it was never compared");
        note_checked(&mut tx, world.site, now).await.unwrap();
        assert!(due(&mut tx, now, 10).await.unwrap().is_empty());
        for (kind, at, is_due) in [
            ("vlan", now - TimeDelta::seconds(1), false),
            ("client", now + TimeDelta::seconds(1), false),
            ("port", now + TimeDelta::seconds(1), true),
        ] {
            let row = Row { read_at: Some(at), complete: Completeness::Complete, ..Row::new(kind, "") };
            model_readings::save(&mut tx, world.controller, &row).await.unwrap();
            assert_eq!(!due(&mut tx, now, 10).await.unwrap().is_empty(), is_due, "{kind} {at}");
        }
    }

    async fn a_site_is_compared_again_a_few_times_after_a_reading(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        set(&mut tx, &brain(&world, None)).await.unwrap();
        let start = world.clock.now();
        let row = Row { read_at: Some(start), complete: Completeness::Complete, ..Row::new("vlan", "") };
        model_readings::save(&mut tx, world.controller, &row).await.unwrap();
        let mut compared = Vec::new();
        for seconds in (1..300).step_by(5) {
            let now = start + TimeDelta::seconds(seconds);
            if !due(&mut tx, now, 10).await.unwrap().is_empty() {
                note_checked(&mut tx, world.site, now).await.unwrap();
                compared.push(seconds);
            }
        }
        assert_eq!(compared, [1, 31, 61]);
    }

    async fn a_site_is_compared_again_for_what_its_policy_did_not_stage(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let drift = VlanDrift {
            controller_id: world.controller,
            site_ref: String::new(),
            class: VlanFault::Missing,
            vlan_id: 20,
            place: String::new(),
            expected: None,
            found: None,
            since: now,
            staged_at: None,
        };
        vlan_drift::replace(&mut tx, world.site, std::slice::from_ref(&drift)).await.unwrap();
        for (on_drift, is_due) in [(OnDrift::Report, false), (OnDrift::Stage, true)] {
            set(&mut tx, &NewBrain { on_drift, ..brain(&world, None) }).await.unwrap();
            note_checked(&mut tx, world.site, now).await.unwrap();
            assert!(due(&mut tx, now + RETRY / 2, 10).await.unwrap().is_empty());
            assert_eq!(!due(&mut tx, now + RETRY, 10).await.unwrap().is_empty(), is_due, "{on_drift}");
        }
        vlan_drift::note_staged(&mut tx, world.site, &[drift], now).await.unwrap();
        assert!(due(&mut tx, now + RETRY, 10).await.unwrap().is_empty());
    }
}
