//! Counts the parts of messages where they come off the wire, before they are put together and no longer visible.
//!
//! An empty part makes no message larger, so there could be any number of them. Whole messages are counted in `wire`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use heddle_core::frames::{Frame, Frames};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pace::Pace;

/// Parts of messages within a second, a message of one part not counted.
pub(super) const PARTS_PER_SECOND: usize = 200;

/// There were more parts than that.
#[derive(Debug, thiserror::Error)]
#[error("more than {PARTS_PER_SECOND} parts of messages per second")]
pub(super) struct TooManyParts;

impl TooManyParts {
    pub(super) fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

/// A peer's bytes, up to the part that is one too many.
#[derive(Debug)]
pub(super) struct Metered<S> {
    inner: S,
    frames: Frames,
    pace: Pace,
    is_over: bool,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, frames: Frames::default(), pace: Pace::of(PARTS_PER_SECOND), is_over: false }
    }
}

impl<S: AsyncRead + Unpin> Metered<S> {
    /// Reads to the end, and keeps nothing.
    pub(super) async fn discard(&mut self) {
        // A peer that breaks off has come to the end, too.
        tokio::io::copy(&mut self.inner, &mut tokio::io::sink()).await.ok();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over {
            return Poll::Ready(Err(io::Error::other(TooManyParts)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        // The runtime's clock: a test on a slow machine stops it.
        let now = tokio::time::Instant::now().into_std();
        let this = &mut *self;
        let came = buffer.filled().get(before..).unwrap_or_default();
        let is_over = |byte: &u8| this.frames.begins(*byte) == Some(Frame::Part) && !this.pace.takes(now);
        let parts = came.iter().position(is_over);
        let Some(end) = parts else { return Poll::Ready(Ok(())) };
        self.is_over = true;
        // What came before it is answered.
        buffer.set_filled(before + end);
        if end > 0 { Poll::Ready(Ok(())) } else { Poll::Ready(Err(io::Error::other(TooManyParts))) }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// A masked frame, as a client sends it.
    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload {
            0..=125 => bytes.push(0x80 | u8::try_from(payload).unwrap()),
            126..=0xFFFF => {
                bytes.push(0x80 | 0x7E);
                bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 0x7F);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.extend([0, 0x80, 0x01, 0xFF]);
        bytes.extend(std::iter::repeat_n(0x01, payload));
        bytes
    }

    /// What gets through, and whether the end came by too many parts.
    async fn through(bytes: &[u8], at_once: usize) -> (Vec<u8>, bool) {
        let (mut near, far) = tokio::io::duplex(at_once);
        let mut metered = Metered::new(far);
        let mut came = Vec::new();
        let sending = async {
            // A peer that is no longer read is not waited for, so an error is ignored.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut near, bytes).await;
            drop(near);
        };
        let reading = async {
            let ended = metered.read_to_end(&mut came).await;
            drop(metered);
            ended.is_err_and(|error| TooManyParts::is(&error))
        };
        let ((), is_over) = tokio::join!(sending, reading);
        (came, is_over)
    }

    #[tokio::test(start_paused = true)]
    async fn parts_are_counted_however_their_bytes_come() {
        // Whole messages and control frames of every size between them count for nothing here.
        let whole = [frame(0x81, 5), frame(0x82, 300), frame(0x89, 3), frame(0x8A, 125), frame(0x81, 70_000)]
            .concat();
        let mut bytes = whole.clone();
        for part in 0..PARTS_PER_SECOND {
            let first = u8::from(part == 0);
            bytes.extend(frame(first, part % 200));
        }
        bytes.extend(&whole);
        for at_once in [1, 3, 7, 1024, 1 << 20] {
            assert_eq!(through(&bytes, at_once).await, (bytes.clone(), false), "{at_once} bytes at once");
        }
        for last in [0x00, 0x80, 0x01, 0x02] {
            let more = [&bytes[..], &frame(last, 2), &whole].concat();
            for at_once in [1, 7, 1 << 20] {
                let (came, is_over) = through(&more, at_once).await;
                assert!(is_over, "{last:#x}");
                assert_eq!(came, bytes, "what came before it gets through");
            }
        }
    }
}
