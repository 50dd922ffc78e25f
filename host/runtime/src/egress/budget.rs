//! How much a call may still ask for.

use std::time::{Duration, Instant};

use heddle_core::fault::{Fault, FaultKind};

use super::ledger::Ledger;

/// Left for the component to make something of the answer.
const MARGIN: Duration = Duration::from_millis(50);

/// Takes one request from the budget of the call.
pub(super) fn take(ledger: &mut Ledger, most: u32) -> Result<(), Fault> {
    if ledger.requests >= most {
        return Err(Fault::new(
            FaultKind::Generic,
            format!("a call may send {most} requests; ask for more in 'limits'"),
        )
        .with_code("request-budget"));
    }
    ledger.requests += 1;
    Ok(())
}

/// Time for a request: what was asked for, within what the call has left.
pub(super) fn time_left(deadline: Instant, asked: Option<Duration>) -> Result<Duration, Fault> {
    let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(MARGIN);
    if left.is_zero() {
        return Err(
            Fault::new(FaultKind::Timeout, "the call has no time left for a request").with_code("deadline")
        );
    }
    Ok(asked.map_or(left, |asked| asked.min(left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_after_the_last_one_is_refused() {
        let mut ledger = Ledger::default();
        assert!(take(&mut ledger, 2).is_ok());
        assert!(take(&mut ledger, 2).is_ok());
        assert_eq!(take(&mut ledger, 2).unwrap_err().code.as_deref(), Some("request-budget"));
    }

    #[test]
    fn a_request_gets_no_more_time_than_the_call_has() {
        let deadline = Instant::now() + Duration::from_secs(2);
        assert!(time_left(deadline, Some(Duration::from_mins(1))).unwrap() < Duration::from_secs(2));
        assert_eq!(time_left(deadline, Some(Duration::from_secs(1))).unwrap(), Duration::from_secs(1));
        assert!(time_left(Instant::now(), None).is_err());
    }
}
