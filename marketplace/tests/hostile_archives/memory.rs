//! Counts the bytes that are allocated at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(held, SeqCst);
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its nature; this one only counts what the system's does"
)]
// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the place came from `alloc` of this allocator, so from the system's.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Carries out a call and returns the most bytes that it held at once. A block that grows counts twice while it moves.
pub(crate) fn peak_bytes<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(SeqCst);
    PEAK.store(before, SeqCst);
    let result = call();
    (result, PEAK.load(SeqCst).saturating_sub(before))
}
