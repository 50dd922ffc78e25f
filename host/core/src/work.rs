//! Counts what passes over texts do, so that tests can say how the work grows with the text.

#[cfg(test)]
thread_local! {
    static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes that so many bytes were read or copied. Does nothing outside tests.
#[inline]
pub(crate) fn count(bytes: usize) {
    #[cfg(test)]
    BYTES.with(|sum| sum.set(sum.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// Bytes that this work read and copied.
#[cfg(test)]
pub(crate) fn counted(work: impl FnOnce()) -> usize {
    BYTES.with(|sum| sum.set(0));
    work();
    BYTES.with(std::cell::Cell::get)
}
