//! The rule that gives out the free places; no SQL.

use std::collections::{BTreeSet, HashMap, VecDeque};

use heddle_core::OrgId;

use super::{Room, Waiting};
use crate::webhooks::SubscriptionId;

/// How many deliveries of a subscription are to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) subscription: SubscriptionId,
    pub(super) count: i64,
}

struct Org {
    held: i64,
    /// Its subscriptions with free places, the next one at the front.
    line: VecDeque<(SubscriptionId, i64)>,
}

/// Gives the places one by one, each to the organization that has the fewest on their way, and there to the subscription
/// that has waited the longest; then it is the turn of the next.
pub(super) fn allot(waiting: &[Waiting], room: Room) -> Vec<Places> {
    let mut orgs: Vec<Org> = Vec::new();
    let mut at: HashMap<OrgId, usize> = HashMap::new();
    for one in waiting {
        let at = *at.entry(one.org_id).or_insert_with(|| {
            orgs.push(Org { held: one.held_in_org, line: VecDeque::new() });
            orgs.len() - 1
        });
        orgs[at].line.push_back((one.id, i64::from(room.per_subscription) - one.held));
    }
    // By how many they hold; of equals, the one that has waited longer comes first.
    let mut next: BTreeSet<(i64, usize)> = orgs.iter().enumerate().map(|(at, org)| (org.held, at)).collect();
    let mut given: Vec<Places> = Vec::new();
    let mut places: HashMap<SubscriptionId, usize> = HashMap::new();
    let mut free = room.in_all;
    while free > 0 {
        let Some((held, at)) = next.pop_first() else { break };
        if held >= i64::from(room.per_organization_now(free)) {
            // No other organization has fewer.
            break;
        }
        let Some((id, left)) = orgs[at].line.pop_front() else { continue };
        let place = *places.entry(id).or_insert_with(|| {
            given.push(Places { subscription: id, count: 0 });
            given.len() - 1
        });
        given[place].count += 1;
        free -= 1;
        if left > 1 {
            orgs[at].line.push_back((id, left - 1));
        }
        next.insert((held + 1, at));
    }
    given
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    const ROOM: Room = Room { per_subscription: 4, per_organization: 32, in_all: 128, reserved: 32 };

    fn waiting(clock: &Clock, org: OrgId, count: usize) -> Vec<Waiting> {
        (0..count).map(|_| Waiting { id: clock.new_id(), org_id: org, held: 0, held_in_org: 0 }).collect()
    }

    fn of(given: &[Places], waiting: &[Waiting]) -> i64 {
        given
            .iter()
            .filter(|places| waiting.iter().any(|one| one.id == places.subscription))
            .map(|places| places.count)
            .sum()
    }

    #[test]
    fn an_organization_with_many_subscriptions_takes_no_more_than_one_with_few() {
        let clock = Clock::default();
        let many = waiting(&clock, clock.new_id(), 100);
        let one = waiting(&clock, clock.new_id(), 1);
        let given = allot(&[many.clone(), one.clone()].concat(), ROOM);
        assert_eq!((of(&given, &many), of(&given, &one)), (32, 4));
        assert!(given.iter().all(|places| (1..=4).contains(&places.count)));
        let few = allot(&[many.clone(), one.clone()].concat(), Room { in_all: 4, reserved: 0, ..ROOM });
        assert_eq!((of(&few, &many), of(&few, &one)), (2, 2), "the last places, in turn");
    }

    #[test]
    fn who_has_many_on_their_way_leaves_the_last_places_to_others() {
        let clock = Clock::default();
        let busy: Vec<Vec<Waiting>> = (0..6).map(|_| waiting(&clock, clock.new_id(), 100)).collect();
        let given = allot(&busy.concat(), ROOM);
        assert_eq!(given.iter().map(|places| places.count).sum::<i64>(), 96);
        let mut hanging = waiting(&clock, clock.new_id(), 10);
        for one in &mut hanging {
            one.held_in_org = 20;
        }
        let calm = waiting(&clock, clock.new_id(), 2);
        let last = Room { in_all: 32, ..ROOM };
        assert!(allot(&hanging, last).is_empty());
        let given = allot(&[hanging.clone(), calm.clone()].concat(), last);
        assert_eq!((of(&given, &hanging), of(&given, &calm)), (0, 4));
    }

    #[test]
    fn a_subscription_that_has_some_on_their_way_gets_the_rest_of_its_places() {
        let clock = Clock::default();
        let mut one = waiting(&clock, clock.new_id(), 1);
        one[0].held = 3;
        one[0].held_in_org = 3;
        assert_eq!(allot(&one, ROOM), [Places { subscription: one[0].id, count: 1 }]);
        assert!(allot(&one, Room { in_all: 0, ..ROOM }).is_empty());
    }
}
