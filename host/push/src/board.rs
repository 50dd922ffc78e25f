//! How the channels of one controller stand, and what that is together.

use std::sync::{Mutex, MutexGuard};

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::push::PushState;
use heddle_store::push::Push;
use tokio::sync::Notify;

use crate::hook::Silence;

/// A channel that was not opened in so many attempts, or in so much time, counts as polling.
const TRIES_MAX: u32 = 3;
const CONNECTING_MAX: TimeDelta = TimeDelta::seconds(30);
/// What is said of a channel that is not open yet and has not failed either.
const NO_ANSWER: &str = "the controller has not answered yet";

/// How one channel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Connecting { since: Timestamp, tries: u32, reason: Option<String> },
    Live { since: Timestamp },
    Polling { since: Timestamp, reason: String },
}

impl Standing {
    /// How it stands by now: what has been connecting for long is polling.
    fn now(&self, now: Timestamp) -> Self {
        match self {
            Self::Connecting { since, tries, reason }
                if *tries >= TRIES_MAX || now - *since >= CONNECTING_MAX =>
            {
                let reason = reason.clone().unwrap_or_else(|| NO_ANSWER.to_owned());
                Self::Polling { since: *since, reason }
            }
            other => other.clone(),
        }
    }

    fn since(&self) -> Timestamp {
        match self {
            Self::Connecting { since, .. } | Self::Live { since } | Self::Polling { since, .. } => *since,
        }
    }

    pub(crate) fn state(&self) -> PushState {
        match self {
            Self::Connecting { .. } => PushState::Connecting,
            Self::Live { .. } => PushState::Live,
            Self::Polling { .. } => PushState::Polling,
        }
    }
}

/// How all channels of a controller stand.
#[derive(Debug)]
pub(crate) struct Board {
    standings: Mutex<Vec<Standing>>,
    /// What is counted when several channels do not stand alike.
    of: &'static str,
    changed: Notify,
}

impl Board {
    /// So many channels that are about to be opened; `of` names them, such as `sites`.
    pub(crate) fn new(channels: usize, of: &'static str, now: Timestamp) -> Self {
        let standing = Standing::Connecting { since: now, tries: 0, reason: None };
        Self { standings: Mutex::new(vec![standing; channels]), of, changed: Notify::new() }
    }

    /// Notes that a channel is open.
    pub(crate) fn opened(&self, at: usize, now: Timestamp) {
        self.set(at, |_| Standing::Live { since: now });
    }

    /// Notes that a channel ended, or could not be opened, for this reason.
    pub(crate) fn lost(&self, at: usize, reason: &str, is_given_up: bool, now: Timestamp) {
        self.set(at, |before| {
            let since = if before.state() == PushState::Live { now } else { before.since() };
            let reason = reason.to_owned();
            let tries = match before {
                Standing::Connecting { tries, .. } => tries + 1,
                Standing::Live { .. } => 0,
                Standing::Polling { .. } => TRIES_MAX,
            };
            if is_given_up {
                Standing::Polling { since, reason }
            } else {
                Standing::Connecting { since, tries, reason: Some(reason) }
            }
        });
    }

    /// Notes how a hook stands, which no attempt decides. Returns whether it is live from now on.
    pub(crate) fn hook(&self, at: usize, silence: Option<Silence>, now: Timestamp) -> bool {
        let mut standings = self.lock();
        let Some(standing) = standings.get_mut(at) else { return false };
        let was = standing.state();
        let next = match silence {
            None if was == PushState::Live => return false,
            None => Standing::Live { since: now },
            Some(Silence { since, reason }) => {
                let before = if was == PushState::Polling { standing.since() } else { now };
                Standing::Polling { since: since.unwrap_or(before), reason }
            }
        };
        let has_changed = *standing != next;
        *standing = next;
        let is_live = standing.state() == PushState::Live;
        drop(standings);
        if has_changed {
            self.changed.notify_one();
        }
        is_live
    }

    fn set(&self, at: usize, next: impl FnOnce(&Standing) -> Standing) {
        let mut standings = self.lock();
        if let Some(standing) = standings.get_mut(at) {
            *standing = next(standing);
        }
        drop(standings);
        self.changed.notify_one();
    }

    /// Waits until a channel stands otherwise.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How each channel stands by now.
    pub(crate) fn standings(&self, now: Timestamp) -> Vec<Standing> {
        self.lock().iter().map(|standing| standing.now(now)).collect()
    }

    /// Returns how all of them stand together, and when that may be otherwise although no channel changes.
    pub(crate) fn together(&self, now: Timestamp) -> (Push, Option<Timestamp>) {
        let standings = self.standings(now);
        let connecting = standings.iter().filter(|one| one.state() == PushState::Connecting);
        let next = connecting.map(|one| one.since() + CONNECTING_MAX).min();
        (together(&standings, self.of), next)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings.lock().expect("no holder of this lock panics")
    }
}

/// `live` is all of them, and `polling` one of them: what that one would tell is seen at the interval.
fn together(standings: &[Standing], of: &str) -> Push {
    let polling: Vec<(Timestamp, &str)> = standings
        .iter()
        .filter_map(|one| match one {
            Standing::Polling { since, reason } => Some((*since, reason.as_str())),
            _ => None,
        })
        .collect();
    if let Some((since, reason)) = polling.iter().min() {
        let count = format!("{} of {} {of}: ", polling.len(), standings.len());
        let reason = if standings.len() > 1 { count + reason } else { (*reason).to_owned() };
        return Push { state: Some(PushState::Polling), since: Some(*since), reason: Some(reason) };
    }
    let connecting = standings.iter().filter_map(|one| match one {
        Standing::Connecting { since, reason, .. } => Some((*since, reason.clone())),
        _ => None,
    });
    if let Some((since, reason)) = connecting.min() {
        return Push { state: Some(PushState::Connecting), since: Some(since), reason };
    }
    let since = standings.iter().map(Standing::since).max();
    Push { state: since.map(|_| PushState::Live), since, reason: None }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn stands(board: &Board, now: Timestamp) -> (PushState, Timestamp, Option<String>) {
        let (push, _) = board.together(now);
        (push.state.unwrap(), push.since.unwrap(), push.reason)
    }

    #[test]
    fn a_controller_is_live_with_all_of_its_channels() {
        let now = Clock::default().now();
        let later = now + TimeDelta::seconds(2);
        let board = Board::new(2, "sites", now);
        assert_eq!(stands(&board, now), (PushState::Connecting, now, None));
        board.opened(0, now);
        assert_eq!(stands(&board, now), (PushState::Connecting, now, None));
        board.opened(1, later);
        assert_eq!(stands(&board, later), (PushState::Live, later, None));
        assert_eq!(board.together(later).1, None);
        board.lost(0, "the login was refused", true, later);
        let reason = Some("1 of 2 sites: the login was refused".to_owned());
        assert_eq!(stands(&board, later), (PushState::Polling, later, reason));
    }

    #[test]
    fn a_channel_that_breaks_is_connecting_for_a_moment() {
        let now = Clock::default().now();
        let secs = TimeDelta::seconds;
        let board = Board::new(1, "channels", now);
        board.opened(0, now);
        let broke = now + secs(10);
        board.lost(0, "broke", false, broke);
        let connecting = (PushState::Connecting, broke, Some("broke".to_owned()));
        assert_eq!(stands(&board, broke), connecting);
        assert_eq!(board.together(broke).1, Some(broke + secs(30)));
        assert_eq!(stands(&board, broke + secs(29)), connecting);
        let polling = (PushState::Polling, broke, Some("broke".to_owned()));
        assert_eq!(stands(&board, broke + secs(30)), polling);
        for _ in 0..2 {
            board.lost(0, "no answer", false, broke + secs(1));
            assert_eq!(stands(&board, broke + secs(1)).0, PushState::Connecting);
        }
        board.lost(0, "no answer", false, broke + secs(3));
        assert_eq!(
            stands(&board, broke + secs(3)),
            (PushState::Polling, broke, Some("no answer".to_owned()))
        );
        board.opened(0, broke + secs(9));
        assert_eq!(stands(&board, broke + secs(9)), (PushState::Live, broke + secs(9), None));
    }

    #[test]
    fn one_that_was_given_up_stays_polling_until_it_is_open() {
        let now = Clock::default().now();
        let board = Board::new(1, "channels", now);
        board.lost(0, "status 404", true, now);
        board.lost(0, "no answer", false, now + TimeDelta::seconds(1));
        assert_eq!(
            stands(&board, now + TimeDelta::seconds(1)),
            (PushState::Polling, now, Some("no answer".to_owned()))
        );
    }

    #[test]
    fn a_hook_is_live_from_its_request_on_and_polling_before() {
        let now = Clock::default().now();
        let secs = |secs| now + TimeDelta::seconds(secs);
        let board = Board::new(1, "channels", now);
        let silent = |since, reason: &str| Some(Silence { since, reason: reason.to_owned() });
        let polling = |since, reason: &str| (PushState::Polling, since, Some(reason.to_owned()));
        assert!(!board.hook(0, silent(None, "no secret"), secs(1)));
        assert_eq!(stands(&board, secs(1)), polling(secs(1), "no secret"));
        assert!(!board.hook(0, silent(None, "nothing yet"), secs(5)));
        assert_eq!(stands(&board, secs(5)), polling(secs(1), "nothing yet"), "it polls since then");
        assert!(board.hook(0, None, secs(9)));
        assert!(!board.hook(0, None, secs(10)), "it was live before");
        assert_eq!(stands(&board, secs(10)), (PushState::Live, secs(9), None));
        assert!(!board.hook(0, silent(Some(secs(60)), "quiet"), secs(61)));
        assert_eq!(stands(&board, secs(61)), polling(secs(60), "quiet"));
        assert!(board.hook(0, None, secs(70)));
        assert!(!board.hook(1, None, now), "there is no such channel");
    }

    #[test]
    fn one_that_never_answered_says_so() {
        let now = Clock::default().now();
        let board = Board::new(1, "channels", now);
        let late = now + CONNECTING_MAX;
        assert_eq!(stands(&board, late), (PushState::Polling, now, Some(NO_ANSWER.to_owned())));
    }
}
