//! The order in which the parts of a set are applied: the far side first, so that no part cuts the way to one that is still to
//! come.

use std::cmp::Reverse;

use heddle_store::sagas::NewPart;

/// A part, as far as its place depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) part: NewPart,
    pub(crate) can_be_taken_back: bool,
}

/// Puts parts into their order. What cannot be taken back comes last: until then every other part can still fail, and every
/// earlier part can be reverted. A controller of which it is not known how far it is counts as the farthest.
pub(crate) fn ordered(mut parts: Vec<Placed>) -> Vec<NewPart> {
    parts.sort_by_key(|placed| {
        let hops = placed.part.hops.unwrap_or(u32::MAX);
        (!placed.can_be_taken_back, Reverse(hops), placed.part.controller_id)
    });
    parts.into_iter().map(|placed| placed.part).collect()
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn the_far_side_comes_first_and_what_lasts_comes_last() {
        let clock = Clock::default();
        let placed = |hops: Option<u32>, can_be_taken_back| Placed {
            part: NewPart { change_id: clock.new_id(), controller_id: clock.new_id(), hops },
            can_be_taken_back,
        };
        let way_in = placed(Some(0), true);
        let near = placed(Some(1), true);
        let far = placed(Some(3), true);
        // Where nothing else decides, the ids of the controllers do.
        let mut unknown = [placed(None, true), placed(None, true)];
        unknown.sort_by_key(|placed| placed.part.controller_id);
        let lasting = [placed(Some(2), false), placed(Some(0), false)];
        let order = ordered(vec![way_in, lasting[1], near, unknown[1], lasting[0], unknown[0], far]);
        let expected = [unknown[0], unknown[1], far, near, way_in, lasting[0], lasting[1]];
        assert_eq!(order, expected.map(|placed| placed.part));
    }
}
