//! What a login tells the component: ids, and never a secret that the device repeated.

use heddle_core::secret::Secret;

use crate::egress::scrub;

const BYTES_MAX: usize = 256;

/// Why a captured value is withheld as a whole; `None` when the component may have it.
pub(super) fn refusal(value: &str, secrets: &[Secret]) -> Option<&'static str> {
    if value.len() > BYTES_MAX {
        return Some("it has more than 256 bytes");
    }
    let is_plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b'\\');
    if !value.bytes().all(is_plain) {
        return Some("it has characters other than visible ASCII without quotes and backslash");
    }
    scrub::holds(value, secrets).then_some("it holds a field of the credential or another captured value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_texts_without_a_secret_are_told() {
        let secrets = [Secret::new("correct horse"), Secret::new("tok-1")];
        for value in ["site-1", "5f0c1a", "http://10.0.0.1:8043/x?y=1", &"a".repeat(256)] {
            assert_eq!(refusal(value, &secrets), None, "{value}");
        }
        for value in [
            &"a".repeat(257),
            "two words",
            "a\u{e4}",
            "a\nb",
            "a\"b",
            "a\\u0063",
            "correct%20horse",
            "x-Y29ycmVjdCBob3JzZQ-x",
            "a-tok-1-b",
        ] {
            assert!(refusal(value, &secrets).is_some(), "{value}");
        }
    }
}
