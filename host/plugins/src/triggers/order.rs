//! In which order plugins are called for what is due.

use std::collections::HashMap;
use std::mem::discriminant;

use heddle_core::Timestamp;

use super::Key;

/// Something that is due, since when, and what names it.
pub(super) type Due<T> = (Key, Timestamp, T);

/// Puts what is due into the order in which it gets places: by turns among the plugins, and of each plugin by turns among
/// settings, timers and events. A kind that has places already (`held`) has had as many turns. Within a turn, what waits
/// longest comes first.
///
/// So the many timers of a plugin keep neither its own events nor other plugins from their places.
pub(super) fn in_turns<T>(mut due: Vec<Due<T>>, held: impl Fn(&Key) -> usize) -> Vec<(Key, T)> {
    due.sort_by_key(|(_, since, _)| *since);
    let mut turns = HashMap::new();
    let mut ordered: Vec<(usize, Key, T)> = Vec::with_capacity(due.len());
    for (key, _, what) in due {
        let next = turns.entry((key.plugin, discriminant(&key.item))).or_insert_with(|| held(&key));
        let turn = *next;
        *next += 1;
        ordered.push((turn, key, what));
    }
    // What is of one turn stays in its order.
    ordered.sort_by_key(|(turn, ..)| *turn);
    ordered.into_iter().map(|(_, key, what)| (key, what)).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use heddle_core::{Clock, OrgId};
    use heddle_store::plugins::PluginUid;

    use super::super::Item;
    use super::*;

    #[test]
    fn timers_of_a_plugin_keep_neither_its_events_nor_other_plugins_waiting() {
        let clock = Clock::default();
        let (org, now): (OrgId, Timestamp) = (clock.new_id(), clock.now());
        let (slow, other): (PluginUid, PluginUid) = (clock.new_id(), clock.new_id());
        let timer = |plugin, name: &str| Key { org, plugin, item: Item::Timer(name.to_owned()) };
        let events = |plugin| Key { org, plugin, item: Item::Trigger("e".to_owned()) };
        let at = |secs| now + TimeDelta::seconds(secs);
        let due = vec![
            (timer(slow, "c"), at(3), "slow c"),
            (timer(slow, "a"), at(1), "slow a"),
            (timer(slow, "b"), at(2), "slow b"),
            (events(slow), at(9), "slow events"),
            (timer(other, "d"), at(8), "other d"),
        ];
        let names = |held: usize| -> Vec<&str> {
            let has =
                |key: &Key| if matches!(key.item, Item::Timer(_)) && key.plugin == slow { held } else { 0 };
            in_turns(due.clone(), has).into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names(0), ["slow a", "other d", "slow events", "slow b", "slow c"]);
        // With places of its timers already, everything else comes first.
        assert_eq!(names(2), ["other d", "slow events", "slow a", "slow b", "slow c"]);
    }
}
