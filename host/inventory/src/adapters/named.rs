//! How the audit log names components and packages.

use uuid::Uuid;

/// Returns the id of a component or a package in the audit log, which names targets by UUID: it is made of its hash.
pub fn id_of(sha256: &str) -> Uuid {
    let mut bytes = [0; 16];
    let _ = hex::decode_to_slice(sha256.get(..32).unwrap_or_default(), &mut bytes);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_code_has_the_same_id() {
        let (one, two) = ("ab".repeat(32), "cd".repeat(32));
        assert_eq!(id_of(&one), id_of(&one));
        assert_ne!(id_of(&one), id_of(&two));
    }
}
