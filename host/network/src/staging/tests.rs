use heddle_core::fault::FaultKind;

use super::*;

#[test]
fn what_a_vendor_cannot_do_is_not_asked_for_again() {
    for (kind, passes) in [
        (FaultKind::Timeout, true),
        (FaultKind::Connection, true),
        (FaultKind::Unsupported, false),
        (FaultKind::Invalid, false),
    ] {
        assert_eq!(may_pass_at_vendor(kind.public().1), passes, "{kind}");
    }
    assert!(may_pass(&Error::conflict("a change is applied")));
    assert!(!may_pass(&Error::field("name", "is too long")));
}
