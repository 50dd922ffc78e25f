//! Counts frames of a WebSocket where they come off the wire, before they are put together and no longer visible.
//!
//! An empty part makes no message larger, and a ping is answered: there could be any number of both.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use heddle_core::frames::{Frame, Frames};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::{FRAMES_PER_SECOND, PARTS_PER_SECOND};
use super::rate::{PerSecond, Throttle};

/// There were more frames than are taken.
#[derive(Debug, thiserror::Error)]
#[error("more frames per second than are taken")]
pub(super) struct TooManyFrames;

impl TooManyFrames {
    pub(super) fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

/// A peer's bytes, up to the frame that is one too many, and not faster than a channel may be.
pub(super) struct Metered<S> {
    inner: S,
    frames: Frames,
    parts: PerSecond,
    whole: PerSecond,
    throttle: Arc<Throttle>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, throttle: Arc<Throttle>) -> Self {
        Self {
            inner,
            frames: Frames::default(),
            parts: PerSecond::of(PARTS_PER_SECOND),
            whole: PerSecond::of(FRAMES_PER_SECOND),
            throttle,
            pause: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(context));
            this.pause = None;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let (came, now) = (buffer.filled().get(before..).unwrap_or_default(), Instant::now());
        this.pause = this.throttle.take(came.len(), now).map(|until| Box::pin(sleep_until(until)));
        let is_over = came.iter().any(|byte| match this.frames.begins(*byte) {
            None => false,
            Some(Frame::Whole) => !this.whole.takes(now),
            Some(Frame::Part | Frame::Control) => !this.parts.takes(now),
        });
        if is_over {
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(TooManyFrames)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A frame as a server sends it.
    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload {
            0..=125 => bytes.push(u8::try_from(payload).unwrap()),
            126..=0xFFFF => {
                bytes.push(126);
                bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.extend(std::iter::repeat_n(0x01, payload));
        bytes
    }

    /// Whether all of these bytes get through.
    async fn gets_through(bytes: &[u8], at_once: usize) -> bool {
        let (mut near, far) = tokio::io::duplex(at_once);
        let mut metered = Metered::new(far, Arc::default());
        let mut came = Vec::new();
        let sending = async {
            let _ = near.write_all(bytes).await;
            drop(near);
        };
        let reading = async {
            let ended = metered.read_to_end(&mut came).await;
            drop(metered);
            ended.map_err(|error| assert!(TooManyFrames::is(&error))).is_ok()
        };
        let ((), is_all) = tokio::join!(sending, reading);
        is_all
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_counted_however_their_bytes_come() {
        let whole = [frame(0x81, 5), frame(0x82, 300), frame(0x81, 70_000)].concat();
        let parts: Vec<u8> = (0..PARTS_PER_SECOND)
            .flat_map(|n| frame(if n % 2 == 0 { 0x00 } else { 0x89 }, n % 120))
            .collect();
        let sound = [whole.clone(), parts, whole].concat();
        for at_once in [1, 7, 1 << 20] {
            assert!(gets_through(&sound, at_once).await, "{at_once} bytes at once");
            for last in [0x00, 0x80, 0x01, 0x89, 0x8A] {
                let more = [&sound[..], &frame(last, 2)].concat();
                assert!(!gets_through(&more, at_once).await, "{last:#x}, {at_once} bytes at once");
            }
        }
        let most: Vec<u8> = (0..FRAMES_PER_SECOND).flat_map(|_| frame(0x81, 0)).collect();
        assert!(gets_through(&most, 1 << 20).await);
        assert!(!gets_through(&[most, frame(0x81, 0)].concat(), 1 << 20).await);
    }
}
