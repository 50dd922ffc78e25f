//! A connection to a directory, through the runtime's guard, with TLS where the settings demand it.
//!
//! The LDAP library uses one end of a socket pair; this module carries the bytes of the other end to the directory. So
//! the guard and the checks of certificates are those of every connection, and the bytes that a directory may send are
//! bounded.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::os::unix::net::UnixStream as Pair;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt as _;
use heddle_kernel::app::App;
use heddle_runtime::Dialled;
use ldap3::{LdapConnAsync, LdapConnSettings, StdStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::UnixStream;

use super::super::fault::ProviderFault;
use super::super::settings::{Ldap, Place};
use super::framing;

/// Time limit from name resolution to the last answer.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// Most bytes that a directory may send on one connection.
const BYTES_MAX: u64 = 4 << 20;
/// Longest answer to the request for TLS.
const START_TLS_BYTES_MAX: usize = 4096;
/// `ExtendedRequest` 1.3.6.1.4.1.1466.20037 as message 1 (RFC 4511 section 4.14).
const START_TLS: &[u8] = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";

/// Carries bytes between the library and the directory while it is polled.
pub(super) struct Traffic(Pin<Box<dyn Future<Output = Infallible> + Send>>);

impl Traffic {
    /// Runs work with the directory and carries its bytes. Without it the library waits without end.
    pub(super) async fn carry<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ProviderFault> {
        let both = async {
            tokio::select! {
                biased;
                done = work => done,
                never = &mut self.0 => match never {},
            }
        };
        // The library panics at unexpected messages.
        let done = AssertUnwindSafe(both).catch_unwind().await;
        done.map_err(|_| ProviderFault::faulty("the directory sends what no directory should"))
    }
}

/// Runs work within the deadline of one sign-in.
pub(super) async fn in_time<T, E: From<ProviderFault>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => {
            Err(ProviderFault::silent(format!("the directory gave no answer in {} s", DEADLINE.as_secs()))
                .into())
        }
    }
}

pub(super) async fn dial(app: &App, settings: &Ldap) -> Result<Dialled, ProviderFault> {
    let place = Place::parse(&settings.url).ok_or_else(|| ProviderFault::faulty("the address is not one"))?;
    Ok(app.runtime.dial(&place.host, place.port, DEADLINE).await?)
}

/// Whether the settings demand TLS.
pub(super) fn wants_tls(settings: &Ldap) -> bool {
    settings.start_tls || Place::parse(&settings.url).is_some_and(|place| place.is_ldaps)
}

/// Begins TLS as the settings demand. Passwords are sent in the clear only where the settings allow it.
pub(super) async fn secure(mut dialled: Dialled, settings: &Ldap) -> Result<Dialled, ProviderFault> {
    if settings.start_tls {
        request_tls(&mut dialled).await?;
    } else if !wants_tls(settings) {
        return if settings.insecure {
            Ok(dialled)
        } else {
            Err(ProviderFault::faulty("no TLS is configured, and passwords are not sent in the clear"))
        };
    }
    Ok(dialled.secure(&settings.tls).await?)
}

/// Hands the connection to the library.
pub(super) async fn speak(dialled: Dialled) -> Result<(ldap3::Ldap, Traffic), ProviderFault> {
    let broken = |_| ProviderFault::faulty("no socket pair can be made");
    let (library_end, own_end) = Pair::pair().map_err(broken)?;
    own_end.set_nonblocking(true).map_err(broken)?;
    let own_end = UnixStream::from_std(own_end).map_err(broken)?;
    let settings = LdapConnSettings::new().set_std_stream(StdStream::Unix(library_end));
    let (connection, ldap) = LdapConnAsync::with_settings(settings, "ldapi:///")
        .await
        .map_err(|_| ProviderFault::faulty("the connection cannot be used"))?;
    let traffic = async move {
        let ((), ()) = tokio::join!(
            // The caller that waits for an answer gets its error.
            async { drop(connection.drive().await) },
            pump(own_end, dialled),
        );
        pending::<Infallible>().await
    };
    Ok((ldap, Traffic(Box::pin(traffic))))
}

/// Copies in both directions until both have ended.
async fn pump(library: UnixStream, dialled: Dialled) {
    let (from_library, mut to_library) = split(library);
    let (from_directory, mut to_directory) = split(dialled.stream);
    let mut from_directory = from_directory.take(BYTES_MAX);
    let mut from_library = from_library;
    tokio::join!(
        async {
            let _ = framing::pass_on(&mut from_directory, &mut to_library).await;
            let _ = to_library.shutdown().await;
        },
        async {
            let _ = copy(&mut from_library, &mut to_directory).await;
            let _ = to_directory.shutdown().await;
        },
    );
}

/// Asks for TLS and reads exactly the answer. Bytes that an attacker inserted after it are read as TLS, and refused.
async fn request_tls(dialled: &mut Dialled) -> Result<(), ProviderFault> {
    let broken = |_| ProviderFault::faulty("the connection broke while TLS was asked for");
    dialled.stream.write_all(START_TLS).await.map_err(broken)?;
    dialled.stream.flush().await.map_err(broken)?;
    let mut head = [0; 2];
    dialled.stream.read_exact(&mut head).await.map_err(broken)?;
    let unexpected =
        || ProviderFault::faulty("the directory does not answer the request for TLS as LDAP does");
    let length = match (head[0], head[1]) {
        (0x30, short @ 0..=0x7f) => usize::from(short),
        (0x30, long @ 0x81..=0x84) => {
            let mut bytes = vec![0; usize::from(long & 0x7f)];
            dialled.stream.read_exact(&mut bytes).await.map_err(broken)?;
            bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
        }
        _ => return Err(unexpected()),
    };
    if length > START_TLS_BYTES_MAX {
        return Err(unexpected());
    }
    let mut body = vec![0; length];
    dialled.stream.read_exact(&mut body).await.map_err(broken)?;
    match result_code(&body) {
        Some(0) => Ok(()),
        Some(code) => {
            Err(ProviderFault::faulty(format!("the directory refuses TLS with LDAP result {code}")))
        }
        None => Err(unexpected()),
    }
}

/// The result code of an `ExtendedResponse` to message 1.
fn result_code(message: &[u8]) -> Option<u8> {
    let (id, rest) = element(message, 0x02)?;
    let (response, _) = element(rest, 0x78)?;
    let (code, _) = element(response, 0x0a)?;
    match (id, code) {
        ([1], [code]) => Some(*code),
        _ => None,
    }
}

/// The content of the element with this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(2)?;
    if head[0] != tag {
        return None;
    }
    let (length, rest) = match head[1] {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], code: Option<u8>) {
        assert_eq!(result_code(message), code, "{message:02x?}");
    }

    #[test]
    fn an_answer_to_the_request_for_tls_is_read_in_every_length() {
        // As OpenLDAP answers, without the outer sequence.
        check(b"\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00", Some(0));
        check(b"\x02\x01\x01\x78\x84\x00\x00\x00\x07\x0a\x01\x34\x04\x00\x04\x00", Some(52));
        check(b"\x02\x01\x02\x78\x07\x0a\x01\x00\x04\x00\x04\x00", None);
        check(b"\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00", None);
        check(b"\x02\x01\x01\x78\x09\x0a\x01\x00", None);
        check(b"\x02\x01\x01\x78\x80", None);
        check(b"", None);
        assert_eq!(START_TLS.len(), 31);
    }
}
