//! Numbers by chance whose seed a failing test names, so that the failure can be reproduced.

#[derive(Debug)]
pub(crate) struct Random {
    pub(crate) seed: u64,
    state: u64,
}

impl Random {
    pub(crate) fn new() -> Self {
        Self::of(u64::from_be_bytes(*heddle_core::secret::random_bytes::<8>()))
    }

    /// The same numbers as before.
    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let below = u64::try_from(from.len()).expect("it is small");
        &from[usize::try_from(self.next(below)).expect("it is small")]
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.seed);
        }
    }
}

/// Says where a test was when it failed.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed in {}", self.0);
        }
    }
}
