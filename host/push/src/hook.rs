//! How a hook stands: a channel that the controller opens, with a request for each message. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;
use heddle_core::Timestamp;

/// What is known of a controller's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// Whether requests can be proved.
    pub(crate) has_secret: bool,
    /// When the last request with a good proof came, by the hook that it was for.
    pub(crate) heard: HashMap<String, Timestamp>,
}

/// Why a hook is not live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Silence {
    /// When it began, where that is known.
    pub(crate) since: Option<Timestamp>,
    pub(crate) reason: String,
}

/// Returns why a hook is not live; `None` where a request with a good proof came within so many seconds.
pub(crate) fn silence(requests: &Requests, hook: &str, quiet_s: u32, now: Timestamp) -> Option<Silence> {
    let of = |since, reason: String| Some(Silence { since, reason });
    if !requests.has_secret {
        return of(None, "no secret was made for the requests of the controller".to_owned());
    }
    let Some(heard_at) = requests.heard.get(hook) else {
        return of(None, "the controller has sent no request with its secret yet".to_owned());
    };
    let silent_at = *heard_at + TimeDelta::seconds(quiet_s.into());
    if now < silent_at {
        return None;
    }
    of(Some(silent_at), format!("the controller has sent nothing for {quiet_s} seconds"))
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_hook_is_live_after_a_request_and_until_it_is_quiet() {
        let now = Clock::default().now();
        let secs = |secs| now + TimeDelta::seconds(secs);
        let mut requests = Requests::default();
        let mut reason = |change: &dyn Fn(&mut Requests), at: Timestamp| {
            change(&mut requests);
            silence(&requests, "webhook", 60, at).map(|silence| (silence.since, silence.reason))
        };
        let nothing = |_: &mut Requests| {};
        assert_eq!(
            reason(&nothing, now),
            Some((None, "no secret was made for the requests of the controller".to_owned()))
        );
        let none_yet = Some((None, "the controller has sent no request with its secret yet".to_owned()));
        assert_eq!(reason(&|requests| requests.has_secret = true, now), none_yet);
        let of_another = |requests: &mut Requests| {
            requests.heard.insert("alarms".to_owned(), now);
        };
        assert_eq!(reason(&of_another, now), none_yet, "it is another hook's request");
        let heard = |requests: &mut Requests| {
            requests.heard.insert("webhook".to_owned(), now);
        };
        assert_eq!(reason(&heard, now), None);
        assert_eq!(reason(&nothing, secs(59)), None);
        let quiet = Some((Some(secs(60)), "the controller has sent nothing for 60 seconds".to_owned()));
        assert_eq!(reason(&nothing, secs(60)), quiet);
        assert_eq!(reason(&nothing, secs(600)), quiet, "since it was quiet for so long");
        assert!(reason(&|requests| requests.has_secret = false, now).is_some(), "a request proves nothing");
    }
}
