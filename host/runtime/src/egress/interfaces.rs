//! The addresses that this machine itself has, under whatever name a network knows them.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a look at the interfaces is good for.
const KEPT: Duration = Duration::from_secs(30);

/// The addresses of this machine's interfaces, at most half a minute old.
pub(super) struct Interfaces {
    look: fn() -> std::io::Result<HashSet<IpAddr>>,
    seen: Mutex<Option<(Instant, Arc<HashSet<IpAddr>>)>>,
}

impl Default for Interfaces {
    fn default() -> Self {
        Self { look: addresses, seen: Mutex::default() }
    }
}

impl std::fmt::Debug for Interfaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interfaces").finish_non_exhaustive()
    }
}

impl Interfaces {
    /// Whether an interface of this machine has this address.
    pub(super) fn have(&self, address: IpAddr) -> bool {
        self.now().contains(&address.to_canonical())
    }

    fn now(&self) -> Arc<HashSet<IpAddr>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, found)) = &*seen
            && at.elapsed() < KEPT
        {
            return found.clone();
        }
        let found = match (self.look)() {
            Ok(found) => Arc::new(found),
            Err(error) => {
                tracing::warn!(error = %error, "addresses of this machine's interfaces cannot be read");
                seen.as_ref().map(|(_, found)| found.clone()).unwrap_or_default()
            }
        };
        *seen = Some((Instant::now(), found.clone()));
        found
    }

    #[cfg(test)]
    pub(super) fn fixed(look: fn() -> std::io::Result<HashSet<IpAddr>>) -> Self {
        Self { look, seen: Mutex::default() }
    }
}

/// The addresses that this machine has now, in their order; none where they cannot be read.
pub fn own_addresses() -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = addresses().unwrap_or_default().into_iter().collect();
    found.sort_unstable();
    found
}

fn addresses() -> std::io::Result<HashSet<IpAddr>> {
    let found = if_addrs::get_if_addrs()?;
    Ok(found.into_iter().map(|interface| interface.ip().to_canonical()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_interfaces_have_loopback_and_nothing_foreign() {
        let interfaces = Interfaces::default();
        assert!(interfaces.have("127.0.0.1".parse().unwrap()));
        assert!(interfaces.have("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!interfaces.have("192.0.2.1".parse().unwrap()));
        assert!(own_addresses().contains(&"127.0.0.1".parse().unwrap()));
    }
}
