//! Channels by which controllers say that something has to be read again: opened, read and judged here.
//!
//! Of a message nothing leaves but what has to be read ([`Told`]): no content is stored, logged, shown or given to a
//! component. A channel is opened as a reading of the host, through the same checks as the requests of components, and no
//! message is sent but what the protocol itself needs.

mod answer;
mod decode;
mod each;
mod ended;
mod frames;
mod hear;
mod hook;
mod incoming;
pub(crate) mod limits;
mod lines;
mod open;
pub(super) mod places;
mod rate;
mod rules;
mod site;
mod socket;
#[cfg(test)]
mod tests;
mod told;
mod watch;

use std::sync::Arc;

pub use ended::{Ended, Retry, Whose};
use heddle_core::OrgId;
use heddle_core::secret::Secret;
use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::hear::Ears;
pub use self::hook::Unheard;
use self::limits::TOLD_MAX;
use self::open::Opener;
pub use self::places::ChannelsOpen;
use self::told::Counters;
pub use self::told::{MessageCounts, Place, Told, ToldSite};
use super::{Egress, Facts};
use crate::api::Target;
use crate::task::Owned;

/// An open channel. It is closed when this is dropped.
///
/// That it is open is a gap: everything that its rules name has to be read after [`Adapter::listen`](crate::Adapter::listen)
/// returned it, since a message may have been missed before.
pub struct Listening {
    told: mpsc::Receiver<Result<Told, Ended>>,
    ended: Option<Ended>,
    counters: Arc<Counters>,
    _work: Owned<()>,
}

impl Listening {
    /// Waits for the next thing that has to be read. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The channel has ended; it answers the same from then on.
    pub async fn next(&mut self) -> Result<Told, Ended> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        // Without a last word the threads that it ran on are gone.
        let next = self.told.recv().await.unwrap_or(Err(Ended::OutOfService));
        if let Err(ended) = &next {
            self.ended = Some(ended.clone());
        }
        next
    }

    /// How many messages came since it is open.
    #[must_use]
    pub fn counts(&self) -> MessageCounts {
        self.counters.now()
    }
}

/// Opens a channel on the threads where the connections to controllers live. `cut` ends it at once.
pub(crate) async fn listen(
    (egress, facts): (&Arc<Egress>, &Arc<Facts>),
    target: &Target,
    (channel, place): (&str, Place),
    (threads, cut): (&Handle, &CancellationToken),
) -> Result<Listening, Ended> {
    let of = (Arc::clone(egress), Arc::clone(facts));
    let opener = Arc::new(Opener::new(of, target.clone(), channel, place)?);
    let ((tell, told), (say, is_open)) = (mpsc::channel(TOLD_MAX), oneshot::channel());
    let counters = Arc::new(Counters::default());
    let ears = Ears { told: tell, counters: Arc::clone(&counters), cut: cut.clone() };
    let work = Owned::spawn(threads, hear::run(opener, ears, say));
    // Without an answer the threads are gone.
    is_open.await.unwrap_or(Err(Ended::OutOfService))?;
    Ok(Listening { told, ended: None, counters, _work: work })
}

/// Judges a request to a hook; what is large is judged apart.
pub(crate) async fn heard(
    (egress, facts): (&Egress, &Arc<Facts>),
    (org, channel): (OrgId, &str),
    secret: &Secret,
    (headers, body): (&HeaderMap, &[u8]),
) -> Result<Vec<Told>, Unheard> {
    if body.len() > limits::HOOK_BODY_BYTES_MAX {
        return Err(Unheard::TooLarge);
    }
    let (facts, channel, secret, now) =
        (Arc::clone(facts), channel.to_owned(), secret.clone(), egress.clock.now());
    let (headers, body) = (headers.clone(), body.to_vec());
    let bytes = body.len();
    let work = move || {
        let declared = facts.manifest.push.get(&channel).ok_or(Unheard::Undeclared)?;
        hook::heard(declared, &secret, (&headers, &body), now)
    };
    // The work panicked, or the process stops. The sender is refused as one without a proof, and may ask again.
    egress.apart.run(org, bytes, work).await.unwrap_or(Err(Unheard::Undeclared))
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
