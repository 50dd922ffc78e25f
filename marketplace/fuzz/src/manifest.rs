//! Manifests and descriptions: signed as they are, or packed first, which fills in the files.
//!
//! An input is a manifest, and behind a zero byte perhaps a description. The first byte chooses what is done with it.

use std::collections::BTreeMap;

use heddle_marketplace::{DESCRIPTION, MANIFEST, PackError, Verified, inspect, pack};

use crate::bounded;
use crate::package::{self, COMPONENT, Files, publisher};

/// The manifest is signed as it is.
pub(crate) const AS_IT_IS: u8 = b'0';
/// The manifest is packed.
pub(crate) const PACKED: u8 = b'1';

/// Opens a package with the manifest of an input.
pub fn check(input: &[u8]) {
    let Some((mode, rest)) = input.split_first() else { return };
    let (manifest, description) = match rest.iter().position(|byte| *byte == 0) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let mut files = BTreeMap::from([("component.wasm".to_owned(), COMPONENT.to_vec())]);
    files.extend(description.map(|text| (DESCRIPTION.to_owned(), text.to_vec())));
    if mode % 2 == 0 { open(manifest, files) } else { packed(manifest, files) }
}

fn open(manifest: &[u8], mut files: Files) {
    let seen = bounded(|| inspect(manifest));
    if let Err(error) = &seen {
        // What is refused is said.
        assert!(!error.to_string().is_empty());
    }
    files.insert(MANIFEST.to_owned(), manifest.to_vec());
    let opened = bounded(|| Verified::from_files(package::signed(files), &[publisher().trusted()]));
    let Ok(package) = opened else { return };
    assert_eq!(seen.ok().as_ref(), Some(package.manifest()), "a manifest is shown otherwise than it is");
    package::judge(&package);
}

fn packed(manifest: &[u8], files: Files) {
    let files = match bounded(|| pack(manifest, files, publisher())) {
        Ok(files) => files,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let PackError::Refused(reason) = error {
                assert!(!reason.to_string().is_empty());
            }
            return;
        }
    };
    let opened = bounded(|| Verified::from_files(files, &[publisher().trusted()]));
    package::judge(&opened.expect("what was packed is a package"));
}
