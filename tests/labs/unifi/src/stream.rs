//! The stream of events: what happens, told to every WebSocket that listens to the site. Nothing is told twice.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// Messages that wait for a socket at most; older ones are lost to it.
const WAITING_MAX: usize = 500;

/// The sockets that are open.
#[derive(Default)]
pub(crate) struct Stream {
    sockets: BTreeMap<u64, Socket>,
    opened: u64,
}

struct Socket {
    site: String,
    waiting: VecDeque<String>,
    /// The session that opened it; none for a key.
    account: String,
}

impl Stream {
    /// Opens a socket, and returns its number.
    pub(crate) fn open(&mut self, site: &str, account: &str) -> u64 {
        self.opened += 1;
        let socket = Socket { site: site.to_owned(), waiting: VecDeque::new(), account: account.to_owned() };
        self.sockets.insert(self.opened, socket);
        self.opened
    }

    pub(crate) fn close(&mut self, number: u64) {
        self.sockets.remove(&number);
    }

    /// Closes the sockets of an account.
    pub(crate) fn close_of(&mut self, account: &str) {
        self.sockets.retain(|_, socket| socket.account != account);
    }

    pub(crate) fn close_all(&mut self) {
        self.sockets.clear();
    }

    pub(crate) fn open_sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The sites that some socket listens to.
    pub(crate) fn heard(&self) -> Vec<String> {
        let mut sites: Vec<String> = self.sockets.values().map(|socket| socket.site.clone()).collect();
        sites.sort();
        sites.dedup();
        sites
    }

    /// Tells the sockets of a site, such as `networkconf:sync`.
    pub(crate) fn tell(&mut self, site: &str, message: &str, data: &[Value]) {
        let text = json!({ "meta": { "rc": "ok", "message": message }, "data": data }).to_string();
        for socket in self.sockets.values_mut().filter(|socket| socket.site == site) {
            socket.waiting.push_back(text.clone());
            if socket.waiting.len() > WAITING_MAX {
                socket.waiting.pop_front();
            }
        }
    }

    /// What a socket has not sent yet; `None` when it was closed.
    pub(crate) fn take(&mut self, number: u64) -> Option<Vec<String>> {
        Some(self.sockets.get_mut(&number)?.waiting.drain(..).collect())
    }

    /// Forgets what waits.
    pub(crate) fn drop_waiting(&mut self) {
        self.sockets.values_mut().for_each(|socket| socket.waiting.clear());
    }
}
