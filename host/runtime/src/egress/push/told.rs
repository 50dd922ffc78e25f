//! What leaves the room of a message: what has to be read, and for which site.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has to be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// `device`, and kinds of the model, as the rule names them.
    pub reads: Vec<String>,
    pub site: ToldSite,
    /// Read once more so many seconds later.
    pub again_s: Option<u32>,
    /// Not more often than once in so many seconds for this rule and site; the last one is read at their end.
    pub every_s: Option<u32>,
    /// The place of the rule among those of the channel. `None` of a gap: messages may be missing, and everything that the
    /// channel can tell has to be read.
    pub rule: Option<usize>,
}

/// Which of the vendor's sites something is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ToldSite {
    /// All of them, and what belongs to no site.
    All,
    /// The vendor's id.
    Id(String),
    /// The name that people see. A name that no site has means all of them.
    Name(String),
}

/// What a channel is opened for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Controller,
    /// A site, by the vendor's id.
    Site(String),
}

/// How many messages of a channel came, since it is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Some rule fitted.
    pub read: u64,
    /// No rule fitted, or nothing differed.
    pub ignored: u64,
    /// Not looked at, because there were too many, or no JSON.
    pub dropped: u64,
}

/// The same while messages come.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) read: AtomicU64,
    pub(super) ignored: AtomicU64,
    pub(super) dropped: AtomicU64,
}

impl Counters {
    pub(super) fn now(&self) -> MessageCounts {
        MessageCounts {
            read: self.read.load(Ordering::Relaxed),
            ignored: self.ignored.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}
