//! Checks messages of a directory one by one: only those that the library can parse safely are passed on.
//!
//! The library parses nested elements recursively and stores each of them: a message of nothing but nesting could take
//! down the whole process. So depth, number and size are bounded before the library gets a byte.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Longest message. One entry with its groups is far smaller.
const MESSAGE_BYTES_MAX: usize = 512 << 10;
/// Greatest depth; an answer of LDAP is nested six deep.
const DEPTH_MAX: usize = 16;
const ELEMENTS_MAX: usize = 20_000;
/// Tag of the outer sequence of every message.
const SEQUENCE: u8 = 0x30;
/// Bit of a tag whose content consists of elements.
const CONSTRUCTED: u8 = 0x20;
/// Bits of a tag that continues in further bytes; LDAP has no such tag.
const LONG_TAG: u8 = 0x1f;

/// Passes messages on until the directory ends, or sends an invalid one.
pub(super) async fn pass_on(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let mut head = vec![0; 2];
        from.read_exact(&mut head).await?;
        let mut length = usize::from(head[1]);
        if head[0] != SEQUENCE {
            return Err(unsound());
        }
        if let long @ 0x80.. = head[1] {
            let mut bytes = vec![0; usize::from(long & 0x7f)];
            if !(1..=4).contains(&bytes.len()) {
                return Err(unsound());
            }
            from.read_exact(&mut bytes).await?;
            length = bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            head.extend(bytes);
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(unsound());
        }
        let mut message = vec![0; length];
        from.read_exact(&mut message).await?;
        if !is_sound(&message) {
            return Err(unsound());
        }
        to.write_all(&head).await?;
        to.write_all(&message).await?;
        to.flush().await?;
    }
}

fn unsound() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a message of LDAP")
}

/// Whether every element ends within the one around it, and depth and number stay within the bounds.
fn is_sound(content: &[u8]) -> bool {
    let mut ends = vec![content.len()];
    let (mut at, mut elements) = (0, 0);
    while let Some(&end) = ends.last() {
        if at == end {
            ends.pop();
            continue;
        }
        elements += 1;
        let Some((tag, begins, length)) = element(content, at) else { return false };
        let is_within = begins.checked_add(length).is_some_and(|after| after <= end);
        if elements > ELEMENTS_MAX || !is_within {
            return false;
        }
        if tag & CONSTRUCTED == 0 {
            at = begins + length;
        } else if ends.len() == DEPTH_MAX {
            return false;
        } else {
            ends.push(begins + length);
            at = begins;
        }
    }
    true
}

/// Returns the tag, the offset of the content and its length.
fn element(content: &[u8], at: usize) -> Option<(u8, usize, usize)> {
    let (tag, length) = (*content.get(at)?, *content.get(at + 1)?);
    if tag & LONG_TAG == LONG_TAG {
        return None;
    }
    match length {
        short @ 0..=0x7f => Some((tag, at + 2, usize::from(short))),
        long @ 0x81..=0x84 => {
            let count = usize::from(long & 0x7f);
            let bytes = content.get(at + 2..at + 2 + count)?;
            let length = bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            Some((tag, at + 2 + count, length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns that many nested sequences.
    fn nested(depth: usize) -> Vec<u8> {
        (0..depth).fold(Vec::new(), |inner, _| {
            let length = u32::try_from(inner.len()).unwrap().to_be_bytes();
            [&[SEQUENCE, 0x84][..], &length, &inner].concat()
        })
    }

    #[tokio::test]
    async fn messages_are_passed_on_as_they_came() {
        let bind = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
        let two = [&bind[..], b"\x30\x81\x03\x02\x01\x02"].concat();
        let mut passed = Vec::new();
        let end = pass_on(&mut &two[..], &mut passed).await.unwrap_err();
        assert_eq!((passed, end.kind()), (two, io::ErrorKind::UnexpectedEof));
    }

    #[tokio::test]
    async fn what_would_harm_the_reader_is_not_passed_on() {
        let deep = nested(100_000);
        let many =
            [&[SEQUENCE, 0x83][..], &60_000_u32.to_be_bytes()[1..], &[0x05, 0x00].repeat(30_000)].concat();
        let long = [&[SEQUENCE, 0x84][..], &(64_u32 << 20).to_be_bytes()].concat();
        for (what, bytes) in [
            ("deep", deep.as_slice()),
            ("many", &many),
            ("long", &long),
            ("endless", b"\x30\x80\x00\x00"),
            ("no sequence", b"\x02\x01\x01"),
            ("beyond its parent", b"\x30\x04\x30\x01\x04\x05"),
            ("a long tag", b"\x30\x03\x1f\x01\x00"),
        ] {
            let mut passed = Vec::new();
            let end = pass_on(&mut &bytes[..], &mut passed).await.unwrap_err();
            assert_eq!((passed.len(), end.kind()), (0, io::ErrorKind::InvalidData), "{what}");
        }
        assert!(is_sound(&nested(DEPTH_MAX - 1)) && !is_sound(&nested(DEPTH_MAX)));
    }
}
