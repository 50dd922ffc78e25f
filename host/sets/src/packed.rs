//! Puts changes that belong together into as few sets as the rules of sets allow.

use std::collections::BTreeMap;

use heddle_core::{ChangeId, ControllerId};
use heddle_store::ChangeRow;

use crate::form::MEMBERS;

/// A staged change, and where it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'m> {
    pub change_id: ChangeId,
    pub controller_id: ControllerId,
    pub site_ref: Option<&'m str>,
}

impl<'m> From<&'m ChangeRow> for Member<'m> {
    fn from(row: &'m ChangeRow) -> Self {
        Self { change_id: row.id, controller_id: row.controller_id, site_ref: row.site_ref.as_deref() }
    }
}

/// Changes that can be one set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pack {
    pub change_ids: Vec<ChangeId>,
    /// In the order of their first changes.
    pub controller_ids: Vec<ControllerId>,
}

impl Pack {
    /// Whether they are enough for a set; a change alone is in none.
    pub fn is_set(&self) -> bool {
        MEMBERS.contains(&self.change_ids.len())
    }
}

/// Distributes changes among packs. A pack has at most one of the vendor's sites of each controller, and at most as many changes
/// as a set may have. Changes of one place keep their order, also from one pack to the next.
pub fn packed<'m>(members: impl IntoIterator<Item = Member<'m>>) -> Vec<Pack> {
    let mut places: Vec<((ControllerId, Option<&str>), Vec<ChangeId>)> = Vec::new();
    for member in members {
        let at = (member.controller_id, member.site_ref);
        match places.iter_mut().find(|(known, _)| *known == at) {
            Some((_, ids)) => ids.push(member.change_id),
            None => places.push((at, vec![member.change_id])),
        }
    }
    let mut packs: Vec<Pack> = Vec::new();
    // The first pack that may have the next changes of a controller.
    let mut next: BTreeMap<ControllerId, usize> = BTreeMap::new();
    for ((controller, _), ids) in places {
        for ids in ids.chunks(*MEMBERS.end()) {
            let first = next.get(&controller).copied().unwrap_or(0);
            let has_room = |pack: &Pack| pack.change_ids.len() + ids.len() <= *MEMBERS.end();
            let found = packs.iter().enumerate().skip(first).find(|(_, pack)| has_room(pack));
            let at = found.map_or(packs.len(), |(at, _)| at);
            if at == packs.len() {
                packs.push(Pack::default());
            }
            packs[at].change_ids.extend_from_slice(ids);
            packs[at].controller_ids.push(controller);
            next.insert(controller, at + 1);
        }
    }
    packs
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn members<'m>(
        clock: &Clock,
        controller_id: ControllerId,
        site_ref: Option<&'m str>,
        count: usize,
    ) -> Vec<Member<'m>> {
        (0..count).map(|_| Member { change_id: clock.new_id(), controller_id, site_ref }).collect()
    }

    fn ids(of: &[&[Member<'_>]]) -> Vec<ChangeId> {
        of.iter().copied().flatten().map(|member| member.change_id).collect()
    }

    #[test]
    fn changes_of_several_controllers_are_one_set() {
        let clock = Clock::default();
        let (one, two) = (clock.new_id(), clock.new_id());
        let (a, b) = (members(&clock, one, None, 2), members(&clock, two, Some("s"), 1));
        // Those of one place are together, in whatever order they came.
        let packs = packed([a[0], b[0], a[1]]);
        assert_eq!(packs.len(), 1);
        assert_eq!(packs[0].change_ids, ids(&[&a, &b]));
        assert_eq!(packs[0].controller_ids, [one, two]);
        assert!(packs[0].is_set());
        assert!(packed([]).is_empty() && !packed([b[0]])[0].is_set(), "a change alone is no set");
    }

    #[test]
    fn two_sites_of_one_controller_are_two_sets() {
        let clock = Clock::default();
        let (one, two) = (clock.new_id(), clock.new_id());
        let a = members(&clock, one, Some("a"), 2);
        let b = members(&clock, one, Some("b"), 2);
        let other = members(&clock, two, None, 1);
        let all = [a.clone(), b.clone(), other.clone()].concat();
        let found: Vec<Vec<ChangeId>> = packed(all).into_iter().map(|pack| pack.change_ids).collect();
        assert_eq!(found, [ids(&[&a, &other]), ids(&[&b])]);
    }

    #[test]
    fn what_is_more_than_a_set_may_have_follows_in_the_next() {
        let clock = Clock::default();
        let (one, two, three) = (clock.new_id(), clock.new_id(), clock.new_id());
        let a = members(&clock, one, None, 45);
        let b = members(&clock, two, None, 53);
        let c = members(&clock, three, None, 5);
        let all = [a.clone(), b.clone(), c.clone()].concat();
        let found: Vec<Vec<ChangeId>> = packed(all).into_iter().map(|pack| pack.change_ids).collect();
        assert_eq!(found, [ids(&[&a, &c]), ids(&[&b[..50]]), ids(&[&b[50..]])]);
    }
}
