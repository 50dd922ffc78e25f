//! Argon2id in a bounded number of places.
//!
//! Every hash costs memory and time on purpose. The places bound both, and leave a core to everything else; the queue
//! for them is bounded, too. No thread that serves requests waits.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use heddle_core::secret::{Secret, random_bytes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::error::{Error, RateExceeded};

/// What a hash costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

/// With twice the passes of the first choice in OWASP's cheat sheet for password storage (46 MiB, one pass): 65 ms
/// of one core where this was measured; 50 to 150 ms are wanted. The only place that says it: hashes of another
/// cost are made anew at the next login.
const COST: Cost = Cost { memory_kib: 47_104, passes: 2, lanes: 1 };

impl Default for Cost {
    fn default() -> Self {
        COST
    }
}

impl Cost {
    fn argon2(self) -> Result<Argon2<'static>, argon2::password_hash::Error> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, None)?;
        Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
    }
}

/// How long a request waits for a place.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// Most hashes at once, on whatever machine: together they take 368 MiB.
const PLACES_MAX: usize = 8;
/// Requests that wait for a place; one more is refused.
const QUEUE_MAX: usize = 64;

/// Where passwords are hashed. Each server has one.
#[derive(Debug)]
pub struct Hashing {
    cost: Cost,
    /// Hashes at once: all cores but one, which everything else has for itself.
    places: Arc<Semaphore>,
    /// Requests that have a place or wait for one.
    admitted: Arc<Semaphore>,
}

fn places() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.saturating_sub(1).clamp(1, PLACES_MAX)
}

/// What stands in the place of a hash for users who log in elsewhere: no password fits it.
pub const NONE: &str = "";

/// Whether it is a hash at all. A user who logs in elsewhere has none.
pub fn is_set(hash: &str) -> bool {
    PasswordHash::new(hash).is_ok()
}

impl Hashing {
    pub(crate) fn new(cost: Cost) -> Self {
        Self::with(cost, places(), QUEUE_MAX)
    }

    fn with(cost: Cost, places: usize, queue: usize) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { cost, places: semaphore(places), admitted: semaphore(places + queue) }
    }

    /// A hash that no password has, of the same cost as real ones: for logins of users who do not exist.
    pub fn decoy(&self) -> String {
        let Cost { memory_kib, passes, lanes } = self.cost;
        // A salt like any other, and a digest of zeros.
        let (salt, digest) = ("aGVkZGxlZHVtbXlzYWx0MQ", "A".repeat(43));
        format!("$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${salt}${digest}")
    }

    /// Whether a hash was made at another cost than today's.
    pub fn needs_rehash(&self, hash: &str) -> bool {
        let Ok(hash) = PasswordHash::new(hash) else { return false };
        let is_current = hash.algorithm == Algorithm::Argon2id.ident()
            && hash.version == Some(Version::V0x13.into())
            && Params::try_from(&hash).is_ok_and(|params| {
                let of_hash =
                    Cost { memory_kib: params.m_cost(), passes: params.t_cost(), lanes: params.p_cost() };
                of_hash == self.cost
            });
        !is_current
    }

    /// The argon2id hash of a password, with its parameters and a new salt.
    ///
    /// # Errors
    /// As [`Hashing::place`].
    pub async fn hash(&self, password: Secret) -> Result<String, Error> {
        self.place().await?.hash(password).await
    }

    /// Whether `hash` is the password's. It takes the same time where there is no password.
    ///
    /// # Errors
    /// As [`Hashing::place`].
    pub async fn verify(&self, password: Secret, hash: String) -> Result<bool, Error> {
        let is_set = is_set(&hash);
        let hash = if is_set { hash } else { self.decoy() };
        let cost = self.cost;
        let fits = self.place().await?.run(move || {
            let hash = PasswordHash::new(&hash)?;
            // At the cost that the hash names, not at today's.
            match cost.argon2()?.verify_password(password.expose().as_bytes(), &hash) {
                Ok(()) => Ok(true),
                Err(argon2::password_hash::Error::Password) => Ok(false),
                Err(error) => Err(error),
            }
        });
        Ok(fits.await? && is_set)
    }

    /// Waits for a place, but neither in a long queue nor for long.
    ///
    /// # Errors
    /// 429 when too many wait already, and after [`WAIT_LIMIT`].
    pub async fn place(&self) -> Result<Place, Error> {
        let overloaded = || Error::RateLimited(RateExceeded::AtOnce);
        let admitted = self.admitted.clone().try_acquire_owned().map_err(|_| overloaded())?;
        let held = tokio::time::timeout(WAIT_LIMIT, self.places.clone().acquire_owned()).await;
        let held = held.map_err(|_| overloaded())?.expect("the places are never closed");
        Ok(Place { cost: self.cost, _held: held, _admitted: admitted })
    }
}

/// A place to hash in. A request that had to wait for one may check again whether the work is still needed.
#[derive(Debug)]
pub struct Place {
    cost: Cost,
    _held: OwnedSemaphorePermit,
    _admitted: OwnedSemaphorePermit,
}

impl Place {
    /// Returns the argon2id hash at the cost of this server, with a new salt, and gives the place back. A
    /// hash that has begun is finished, and keeps its place, also when the request is gone. An error is a
    /// 500.
    pub async fn hash(self, password: Secret) -> Result<String, Error> {
        let cost = self.cost;
        self.run(move || {
            let salt = SaltString::encode_b64(random_bytes::<16>().as_slice())?;
            Ok(cost.argon2()?.hash_password(password.expose().as_bytes(), &salt)?.to_string())
        })
        .await
    }

    async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> Result<T, argon2::password_hash::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work ends, also when the request is gone by then.
            let _place = self;
            work()
        });
        done.await.map_err(Error::internal)?.map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests;
