//! The encrypted file of a backup: reading returns the bytes that were written, or an error.
//!
//! A clear header (magic, version, cost of the key, salt, nonce, and a MAC under the passphrase), then chunks sealed
//! with XChaCha20-Poly1305 in the STREAM construction. The tag of a chunk covers its position and whether it is the
//! last, so chunks that are cut off, moved, repeated or altered do not open. The meaning of the bytes is not known
//! here.

use std::io::{self, Read, Write};

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::Payload;
use chacha20poly1305::aead::stream::{DecryptorBE32, EncryptorBE32};
use heddle_core::secret::{Secret, random_bytes};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"HEDDLEBK";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
/// The cipher's nonce without the position of the chunk, which takes five bytes.
const NONCE_BYTES: usize = 19;
const MAC_BYTES: usize = 16;
const COST_AT: usize = MAGIC.len() + 1;
const SALT_AT: usize = COST_AT + 12;
const NONCE_AT: usize = SALT_AT + SALT_BYTES;
const MAC_AT: usize = NONCE_AT + NONCE_BYTES;
pub(super) const HEADER_BYTES: usize = MAC_AT + MAC_BYTES;
/// Plain bytes of every chunk but the last, which may have fewer.
const CHUNK_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;
pub(super) const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// The cost of deriving the key: memory in KiB, rounds, lanes.
const COST: [u32; 3] = [64 * 1024, 3, 1];
/// The highest cost that a file may demand.
const COST_MAX: [u32; 3] = [256 * 1024, 10, 4];

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is not a backup of Heddle, or its first bytes are damaged")]
    Foreign,
    #[error("its format {0} is not known to this version (it knows {known}): use the Heddle that wrote it", known = VERSION)]
    Format(u8),
    #[error("it asks for more work to derive its key than a backup does: its first bytes are damaged")]
    Cost,
    #[error("BACKUP_PASSPHRASE is not the one that it was written with, or its first bytes are damaged")]
    Passphrase,
    #[error("it is damaged or cut off in its chunk {0}")]
    Damaged(u64),
    #[error("it is damaged: {0}")]
    Contents(String),
    #[error("it cannot be read")]
    Io(#[from] io::Error),
}

/// The keys of one file.
#[derive(Clone)]
struct FileKeys {
    cipher: Zeroizing<[u8; 32]>,
    header: Zeroizing<[u8; 32]>,
}

impl FileKeys {
    fn derive(
        passphrase: &Secret,
        salt: &[u8],
        [memory, rounds, lanes]: [u32; 3],
    ) -> Result<Self, Unreadable> {
        let mut both = Zeroizing::new([0; 64]);
        let params = Params::new(memory, rounds, lanes, Some(both.len())).map_err(|_| Unreadable::Cost)?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.expose().as_bytes(), salt, both.as_mut_slice())
            .map_err(|_| Unreadable::Cost)?;
        let (mut cipher, mut header) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
        cipher.copy_from_slice(&both[..32]);
        header.copy_from_slice(&both[32..]);
        Ok(Self { cipher, header })
    }

    fn mac(&self, header: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.header).expect("any key length is accepted");
        mac.update(header);
        mac
    }
}

/// Writes a file.
pub(super) struct Sealer<W: Write> {
    out: W,
    cipher: EncryptorBE32<XChaCha20Poly1305>,
    header: Vec<u8>,
    chunk: Zeroizing<Vec<u8>>,
}

impl<W: Write> Sealer<W> {
    pub(super) fn new(mut out: W, passphrase: &Secret) -> io::Result<Self> {
        let salt = random_bytes::<SALT_BYTES>();
        let nonce = random_bytes::<NONCE_BYTES>();
        let keys = FileKeys::derive(passphrase, salt.as_slice(), COST).map_err(io::Error::other)?;
        let mut header = MAGIC.to_vec();
        header.push(VERSION);
        COST.iter().for_each(|cost| header.extend_from_slice(&cost.to_be_bytes()));
        header.extend_from_slice(salt.as_slice());
        header.extend_from_slice(nonce.as_slice());
        let mac = keys.mac(&header).finalize().into_bytes();
        header.extend_from_slice(&mac[..MAC_BYTES]);
        out.write_all(&header)?;
        let cipher = EncryptorBE32::new((&*keys.cipher).into(), nonce.as_slice().into());
        Ok(Self { out, cipher, header, chunk: Zeroizing::new(Vec::with_capacity(CHUNK_BYTES)) })
    }

    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // A full chunk is kept until more data follows: it may be the last one.
            if self.chunk.len() == CHUNK_BYTES {
                let payload = Payload { msg: &self.chunk, aad: &self.header };
                let sealed = self.cipher.encrypt_next(payload).map_err(|_| too_long())?;
                self.out.write_all(&sealed)?;
                self.chunk.clear();
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Writes the last chunk. Without it the file does not open.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let payload = Payload { msg: &self.chunk, aad: &self.header };
        let sealed = self.cipher.encrypt_last(payload).map_err(|_| too_long())?;
        self.out.write_all(&sealed)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn too_long() -> io::Error {
    io::Error::other("a backup cannot be longer than 256 TiB")
}

/// Reads a file, chunk by chunk; no byte of a chunk is returned before its tag was checked.
pub(super) struct Opener<R: Read> {
    from: R,
    /// `None` after the last chunk.
    cipher: Option<DecryptorBE32<XChaCha20Poly1305>>,
    header: Vec<u8>,
    /// The next sealed chunk: whether data follows it shows whether it is the last.
    next: Vec<u8>,
    plain: Zeroizing<Vec<u8>>,
    at: usize,
    chunk: u64,
}

impl<R: Read> Opener<R> {
    pub(super) fn new(mut from: R, passphrase: &Secret) -> Result<Self, Unreadable> {
        let mut header = vec![0; HEADER_BYTES];
        let got = read_up_to(&mut from, &mut header)?;
        if !header.starts_with(MAGIC) {
            return Err(Unreadable::Foreign);
        }
        let version = header[MAGIC.len()];
        if version != VERSION {
            return Err(Unreadable::Format(version));
        }
        if got < HEADER_BYTES {
            return Err(Unreadable::Damaged(0));
        }
        let mut cost = [0; 3];
        for (cost, bytes) in cost.iter_mut().zip(header[COST_AT..SALT_AT].chunks_exact(4)) {
            *cost = bytes.iter().fold(0, |cost, byte| (cost << 8) | u32::from(*byte));
        }
        if cost.iter().zip(COST_MAX).any(|(cost, max)| *cost > max) {
            return Err(Unreadable::Cost);
        }
        let keys = FileKeys::derive(passphrase, &header[SALT_AT..NONCE_AT], cost)?;
        keys.mac(&header[..MAC_AT])
            .verify_truncated_left(&header[MAC_AT..])
            .map_err(|_| Unreadable::Passphrase)?;
        let cipher = DecryptorBE32::new((&*keys.cipher).into(), header[NONCE_AT..MAC_AT].into());
        let mut next = vec![0; SEALED_CHUNK_BYTES];
        let got = read_up_to(&mut from, &mut next)?;
        next.truncate(got);
        Ok(Self { from, cipher: Some(cipher), header, next, plain: Zeroizing::default(), at: 0, chunk: 0 })
    }

    /// The next line without its end; `None` when the file ends with a line's end.
    pub(super) fn line(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, Unreadable> {
        let mut line = Zeroizing::new(Vec::new());
        loop {
            let rest = &self.plain[self.at..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..end]);
                self.at += end + 1;
                return Ok(Some(line));
            }
            line.extend_from_slice(rest);
            if !self.open_next()? {
                return if line.is_empty() {
                    Ok(None)
                } else {
                    Err(Unreadable::Contents("it does not end with a whole line".to_owned()))
                };
            }
        }
    }

    /// Opens the next chunk; false after the last.
    fn open_next(&mut self) -> Result<bool, Unreadable> {
        let Some(mut cipher) = self.cipher.take() else { return Ok(false) };
        self.chunk += 1;
        let mut following = vec![0; SEALED_CHUNK_BYTES];
        let got = read_up_to(&mut self.from, &mut following)?;
        following.truncate(got);
        let sealed = std::mem::replace(&mut self.next, following);
        let payload = Payload { msg: sealed.as_slice(), aad: &self.header };
        let damaged = |_| Unreadable::Damaged(self.chunk);
        let plain = if self.next.is_empty() {
            cipher.decrypt_last(payload).map_err(damaged)?
        } else {
            let plain = cipher.decrypt_next(payload).map_err(damaged)?;
            self.cipher = Some(cipher);
            plain
        };
        (self.plain, self.at) = (Zeroizing::new(plain), 0);
        Ok(true)
    }
}

fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase() -> Secret {
        Secret::new("a passphrase of words")
    }

    fn sealed(lines: &[&[u8]]) -> Vec<u8> {
        let mut sealer = Sealer::new(Vec::new(), &passphrase()).unwrap();
        for line in lines {
            sealer.write_all(line).unwrap();
            sealer.write_all(b"\n").unwrap();
        }
        sealer.finish().unwrap()
    }

    fn read(file: &[u8]) -> Result<Vec<Vec<u8>>, Unreadable> {
        let mut opener = Opener::new(file, &passphrase())?;
        let mut lines = Vec::new();
        while let Some(line) = opener.line()? {
            lines.push(line.to_vec());
        }
        Ok(lines)
    }

    #[test]
    fn lines_come_back_whatever_their_length() {
        for length in [0, 1, CHUNK_BYTES - 2, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]
        {
            let line = vec![b'x'; length];
            assert_eq!(read(&sealed(&[&line, b"end"])).unwrap(), [line, b"end".to_vec()], "{length}");
        }
        assert!(read(&sealed(&[])).unwrap().is_empty());
    }

    #[test]
    fn two_files_of_the_same_have_nothing_in_common() {
        let (one, two) = (sealed(&[b"same"]), sealed(&[b"same"]));
        assert_ne!(one[SALT_AT..], two[SALT_AT..]);
        assert!(!one.windows(4).any(|window| window == b"same"));
    }

    #[test]
    fn what_is_cut_off_moved_repeated_or_added_does_not_open() {
        let line = vec![b'x'; 3 * CHUNK_BYTES + 5];
        let file = sealed(&[&line]);
        let chunk = |n: usize| HEADER_BYTES + n * SEALED_CHUNK_BYTES;
        for at in [
            0,
            7,
            8,
            20,
            HEADER_BYTES - 1,
            chunk(0),
            chunk(0) + 1,
            chunk(1),
            chunk(2),
            chunk(3),
            file.len() - 1,
        ] {
            assert!(read(&file[..at]).is_err(), "cut at {at}");
        }
        let pieces = |order: &[usize]| {
            let mut moved = file[..HEADER_BYTES].to_vec();
            for n in order {
                moved.extend_from_slice(&file[chunk(*n)..chunk(n + 1).min(file.len())]);
            }
            moved
        };
        assert_eq!(pieces(&[0, 1, 2, 3]), file);
        for order in [&[1, 0, 2, 3][..], &[0, 2, 3], &[0, 1, 1, 2, 3], &[0, 1, 2], &[0, 3], &[3]] {
            assert!(matches!(read(&pieces(order)), Err(Unreadable::Damaged(_))), "{order:?}");
        }
        assert!(read(&[file.as_slice(), b"x"].concat()).is_err());
    }

    #[test]
    fn each_fault_of_the_beginning_is_told_apart() {
        let file = sealed(&[b"x"]);
        assert!(matches!(read(b""), Err(Unreadable::Foreign)));
        assert!(matches!(read(&[0; 200]), Err(Unreadable::Foreign)));
        let altered = |at: usize, to: u8| {
            let mut altered = file.clone();
            altered[at] = to;
            read(&altered).unwrap_err()
        };
        assert!(matches!(altered(MAGIC.len(), 9), Unreadable::Format(9)));
        assert!(matches!(altered(COST_AT, 255), Unreadable::Cost), "it cannot make us take any memory");
        assert!(matches!(altered(COST_AT + 7, 4), Unreadable::Passphrase));
        for at in [SALT_AT, NONCE_AT, MAC_AT] {
            assert!(matches!(altered(at, !file[at]), Unreadable::Passphrase));
        }
        assert!(matches!(altered(HEADER_BYTES, !file[HEADER_BYTES]), Unreadable::Damaged(1)));
        let error = Opener::new(file.as_slice(), &Secret::new("another passphrase")).err().unwrap();
        assert!(matches!(error, Unreadable::Passphrase));
    }
}
