//! Where the frames of a WebSocket begin, for those that count them as they come off the wire.

/// What kind of frame begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A message of one frame.
    Whole,
    /// A part of a message of several.
    Part,
    /// A frame of the protocol's own, such as a ping.
    Control,
}

impl Frame {
    fn of(first: u8) -> Self {
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0F);
        match opcode {
            8.. => Self::Control,
            // 0 continues a message.
            1.. if is_last => Self::Whole,
            _ => Self::Part,
        }
    }
}

/// Reads the headers of a peer's frames (RFC 6455 section 5.2), byte by byte. Nothing is kept of their payloads.
#[derive(Debug, Default)]
pub struct Frames {
    header: [u8; 14],
    /// Bytes of the header that are known.
    have: usize,
    /// Bytes of the payload that are still to come.
    left: u64,
}

impl Frames {
    /// The kind of the frame that this byte begins, where it begins one.
    pub fn begins(&mut self, byte: u8) -> Option<Frame> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.header[self.have] = byte;
        self.have += 1;
        if self.have >= 2 && self.have == self.header_bytes() {
            self.left = self.payload_bytes();
            self.have = 0;
        } else if self.have == 1 {
            return Some(Frame::of(byte));
        }
        None
    }

    fn header_bytes(&self) -> usize {
        let length = match self.header[1] & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.header[1] & 0x80 == 0 { 0 } else { 4 };
        2 + length + mask
    }

    fn payload_bytes(&self) -> u64 {
        let [_, short, bytes @ ..] = self.header;
        let of = |count: usize| bytes.iter().take(count).fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
        match short & 0x7F {
            126 => of(2),
            127 => of(8),
            short => u64::from(short),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Frames::default();
        bytes.iter().filter_map(|byte| frames.begins(*byte)).collect()
    }

    #[test]
    fn frames_of_every_length_are_followed_with_and_without_a_mask() {
        let payload = |count: usize| vec![0x81; count];
        let bytes = [
            vec![0x81, 0],
            [vec![0x82, 5], payload(5)].concat(),
            [vec![0x01, 0x80 | 3, 1, 2, 3, 4], payload(3)].concat(),
            [vec![0x00, 126, 1, 44], payload(300)].concat(),
            [vec![0x89, 0x80, 1, 2, 3, 4], vec![]].concat(),
            [vec![0x80, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70], payload(70_000)].concat(),
            vec![0x88, 0],
        ];
        let expected = [
            Frame::Whole,
            Frame::Whole,
            Frame::Part,
            Frame::Part,
            Frame::Control,
            Frame::Part,
            Frame::Control,
        ];
        assert_eq!(begun(&bytes.concat()), expected);
    }
}
