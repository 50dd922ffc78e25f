//! Fan-out of events to listeners: an event is sent to the receivers that may want it, and to no others.
//!
//! Receivers are sorted by event type and organization only, so that thousands of connections that wait for something
//! else cost an event nothing. Each connection itself decides what it may see in the end. Sending never waits: a receiver
//! that is full is cut.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heddle_core::OrgId;
use heddle_core::event::{EventType, EventTypes};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::published::Published;

/// Events that wait for a slow listener before it is cut off.
const BACKLOG: usize = 4096;

#[derive(Debug, Clone, Default)]
pub(crate) struct Fanout(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    ends: HashMap<u64, End>,
    /// The organization whose events each receiver gets; `None` stands for all organizations.
    by_type: HashMap<EventType, HashMap<u64, Option<OrgId>>>,
}

#[derive(Debug)]
struct End {
    sender: Sender<Arc<Published>>,
    is_cut: Arc<AtomicBool>,
}

/// The listener's end. Nothing is sent to it once it is dropped.
#[derive(Debug)]
pub(crate) struct FanoutReceiver {
    id: u64,
    receiver: Receiver<Arc<Published>>,
    is_cut: Arc<AtomicBool>,
    fanout: Fanout,
}

/// The listener did not keep up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut;

impl Fanout {
    /// A receiver that gets nothing yet.
    pub(crate) fn receiver(&self) -> FanoutReceiver {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let is_cut = Arc::new(AtomicBool::new(false));
        self.table().ends.insert(id, End { sender, is_cut: is_cut.clone() });
        FanoutReceiver { id, receiver, is_cut, fanout: self.clone() }
    }

    /// Sends an event to every receiver that listens to its type and organization.
    pub(crate) fn send(&self, published: &Arc<Published>) {
        let mut table = self.table();
        let table = &mut *table;
        let Some(listening) = table.by_type.get(&published.event.event_type) else { return };
        let org = published.event.organization_id;
        let mut full = Vec::new();
        for (id, _) in listening.iter().filter(|(_, carried)| carried.is_none_or(|carried| carried == org)) {
            let Some(end) = table.ends.get(id) else { continue };
            if let Err(TrySendError::Full(_)) = end.sender.try_send(published.clone()) {
                end.is_cut.store(true, Ordering::Relaxed);
                full.push(*id);
            }
        }
        full.into_iter().for_each(|id| table.remove(id));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // At worst a panic elsewhere leaves one receiver too many or too few.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_types(&mut self, id: u64) {
        self.by_type.retain(|_, listening| {
            listening.remove(&id);
            !listening.is_empty()
        });
    }

    fn remove(&mut self, id: u64) {
        self.ends.remove(&id);
        self.forget_types(id);
    }
}

impl FanoutReceiver {
    /// Gets events of these types of this organization, or of all, and nothing else from now on.
    pub(crate) fn listen_to(&self, org: Option<OrgId>, types: &EventTypes) {
        let mut table = self.fanout.table();
        table.forget_types(self.id);
        for event_type in types.iter() {
            table.by_type.entry(event_type).or_default().insert(self.id, org);
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Arc<Published>, Cut> {
        let received = self.receiver.recv().await;
        if self.is_cut.load(Ordering::Relaxed) { Err(Cut) } else { received.ok_or(Cut) }
    }

    /// Returns an event that is there already.
    pub(crate) fn try_next(&mut self) -> Option<Arc<Published>> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for FanoutReceiver {
    fn drop(&mut self) {
        self.fanout.table().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::super::published::sample;
    use super::*;
    use crate::testing::{DEVICE_OFFLINE, EVENTS, USER_CREATED};

    fn types(types: &[EventType]) -> EventTypes {
        EventTypes::new(types.iter().copied())
    }

    fn published(org: OrgId, event_type: EventType) -> Arc<Published> {
        Arc::new(sample(org, event_type, None))
    }

    #[test]
    fn a_receiver_gets_its_types_of_its_organization() {
        let fanout = Fanout::default();
        let (own, other) = (Clock::default().new_id(), Clock::default().new_id());
        let (mut receiver, mut all) = (fanout.receiver(), fanout.receiver());
        fanout.send(&published(own, DEVICE_OFFLINE));
        assert!(receiver.try_next().is_none(), "nothing before something is asked for");
        receiver.listen_to(Some(own), &types(&[DEVICE_OFFLINE]));
        all.listen_to(None, &types(EVENTS));
        fanout.send(&published(own, DEVICE_OFFLINE));
        fanout.send(&published(own, USER_CREATED));
        fanout.send(&published(other, DEVICE_OFFLINE));
        let count = |receiver: &mut FanoutReceiver| std::iter::from_fn(|| receiver.try_next()).count();
        assert_eq!((count(&mut receiver), count(&mut all)), (1, 3));
        receiver.listen_to(Some(own), &types(&[USER_CREATED]));
        fanout.send(&published(own, DEVICE_OFFLINE));
        assert_eq!(count(&mut receiver), 0);
    }

    #[tokio::test]
    async fn who_does_not_keep_up_is_cut_and_nobody_waits_for_them() {
        let fanout = Fanout::default();
        let org = Clock::default().new_id();
        let (mut slow, mut quick) = (fanout.receiver(), fanout.receiver());
        for receiver in [&slow, &quick] {
            receiver.listen_to(Some(org), &types(&[DEVICE_OFFLINE]));
        }
        let mut heard = 0;
        for _ in 0..=BACKLOG {
            fanout.send(&published(org, DEVICE_OFFLINE));
            heard += std::iter::from_fn(|| quick.try_next()).count();
        }
        assert_eq!(heard, BACKLOG + 1);
        assert_eq!(slow.next().await.err(), Some(Cut));
        drop((slow, quick));
        let table = fanout.table();
        assert!(table.ends.is_empty() && table.by_type.is_empty(), "nothing is left of who went away");
    }
}
