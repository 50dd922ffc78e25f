//! What lies behind what a change touches: devices and clients, which of them have no other path, and whether the service's
//! own way to the device does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Most names in one list.
pub const NAMES_MAX: usize = 20;
/// Most sentences in one list.
pub const SENTENCES_MAX: usize = 20;

words! {
    /// What becomes of the service's own way to the device. Ordered by how bad it is.
    pub enum OwnWay {
        /// A path stays, and everything on it is known.
        Kept = "kept",
        /// Something on the path is not known, so nothing can be said.
        Unknown = "unknown",
        /// One of the ways that may be in use is lost.
        AtRisk = "at_risk",
        /// Every known way is lost.
        Cut = "cut",
    }
}

impl OwnWay {
    /// Whether the change may cut the path to the device.
    pub fn is_lockout_risk(self) -> bool {
        matches!(self, OwnWay::AtRisk | OwnWay::Cut)
    }
}

/// How many there are, and the names of the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BlastRadiusNames")]
pub struct NameList {
    /// All of them.
    #[schemars(range(min = 0))]
    pub count: u32,
    /// At most 20, in the order of their names.
    pub names: Vec<String>,
    /// Those that are counted and not named.
    #[schemars(range(min = 0))]
    pub more: u32,
}

impl NameList {
    /// Counts all names, and keeps the first ones in their order.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut all: Vec<&str> = names.into_iter().collect();
        let count = all.len();
        if count > NAMES_MAX {
            // Only the names that are shown are put into an order.
            all.select_nth_unstable(NAMES_MAX);
            all.truncate(NAMES_MAX);
        }
        all.sort_unstable();
        let names: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let more = count - names.len();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self { count: number(count), names, more: number(more) }
    }
}

/// What a change reaches, as far as the stored topology of the site tells. What is not known is said, and never counted as
/// safe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlastRadius {
    /// Objects of the inventory that the change touches and that carry traffic.
    pub touched: NameList,
    /// Devices whose shortest path towards the gateway leads over what is touched.
    pub devices_behind: NameList,
    /// Those of them that have no other path.
    pub devices_cut_off: NameList,
    /// Clients and guests whose shortest path towards the gateway leads over what is touched.
    pub clients_behind: NameList,
    /// Those of them that have no other path.
    pub clients_cut_off: NameList,
    /// VLANs of which a part is separated from the rest, at most 200.
    pub vlans_cut: Vec<u16>,
    /// What becomes of the service's own way to the device.
    pub own_way: OwnWay,
    /// Why `own_way` is what it is, a sentence each.
    pub reasons: Vec<String>,
    /// What is not known and could change the answer, a sentence each.
    pub unknown: Vec<String>,
    /// When the oldest list that this is made of was read; null where none was.
    pub observed_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let many: Vec<String> = (0..1_000).rev().map(|n| format!("c{n:04}")).collect();
        let list = NameList::of(many.iter().map(String::as_str));
        assert_eq!((list.count, list.more, list.names.len()), (1_000, 980, NAMES_MAX));
        assert_eq!((list.names[0].as_str(), list.names[19].as_str()), ("c0000", "c0019"));
        let few = NameList::of(["b", "a"]);
        assert_eq!((few.count, few.more, few.names), (2, 0, vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn only_a_way_that_may_be_lost_is_a_risk() {
        let risks: Vec<bool> = OwnWay::ALL.iter().map(|way| way.is_lockout_risk()).collect();
        assert_eq!(risks, [false, false, true, true]);
    }
}
