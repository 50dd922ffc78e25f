//! Standard output and error of guests, which are lines of the log.

use async_trait::async_trait;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_io::bytes::Bytes;

use crate::limits::WASI_WRITE_BYTES_MAX;
use crate::lines::{Lines, Stream};
use crate::trap::AskedTooMuch;

/// A handle of one of the two streams. All handles of a stream write to the same lines.
pub(super) struct LogStream {
    lines: Lines,
    stream: Stream,
}

impl LogStream {
    pub(super) fn new(lines: Lines, stream: Stream) -> Self {
        Self { lines, stream }
    }
}

impl OutputStream for LogStream {
    /// What has no room in the log is dropped, and no error: a guest that logs too much works on.
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > WASI_WRITE_BYTES_MAX {
            let (asked, most) = (bytes.len() as u64, WASI_WRITE_BYTES_MAX);
            let error = AskedTooMuch { what: "bytes of output at a time", asked, most };
            return Err(StreamError::Trap(wasmtime::Error::new(error)));
        }
        self.lines.write(self.stream, &bytes);
        Ok(())
    }

    /// A line is logged when it ends.
    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WASI_WRITE_BYTES_MAX)
    }
}

#[async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}
