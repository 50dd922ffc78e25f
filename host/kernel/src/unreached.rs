//! What a tenant learns of a destination that was not reached.
//!
//! A destination that is refused, closed, filtered or silent gives one and the same answer: a caller that may name
//! addresses must not learn by it what is in the network around the service. The cause goes to the log.

use heddle_core::Role;
use heddle_core::fault::{Fault, FaultKind};

use crate::caller::Caller;

/// The one answer.
pub const NEUTRAL: &str = "the destination was not reached: check its address and port, that it accepts connections \
    from this service, and that this service may go there; the service's log says more";

/// Whether the caller operates the service, and so may know what is around it.
pub fn may_know(caller: &Caller) -> bool {
    caller.role == Role::SuperAdmin
}

/// Whether the fault says only that nothing was reached. A certificate that is not trusted was reached, and has to be
/// shown.
pub fn is_unreached(fault: &Fault) -> bool {
    let is_of_network = matches!(fault.kind, FaultKind::Connection | FaultKind::Timeout)
        || fault.kind == FaultKind::Denied && fault.code.as_deref() == Some("address");
    is_of_network && !shows_certificate(&fault.message)
}

/// The message is all that comes through an adapter unchanged.
pub fn shows_certificate(message: &str) -> bool {
    message.contains("certificate is not trusted")
}
