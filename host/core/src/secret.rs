//! Values that must not be seen: they hide in `Debug` and are wiped when dropped.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

/// A secret text. It has no `Display` and no `Serialize`; [`Secret::expose`] is the only way in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl schemars::JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "password", "writeOnly": true })
    }
}

/// `N` bytes of the system's generator.
///
/// # Panics
/// When the operating system has no randomness to give; nothing safe can go on then.
pub fn random_bytes<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    #[expect(clippy::disallowed_methods, reason = "the one place that asks for randomness")]
    getrandom::fill(&mut *bytes).expect("the system's random generator answers");
    bytes
}

/// A new random secret of 256 bits, safe in URLs and headers.
pub fn random_secret() -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(random_bytes::<32>().as_slice()))
}
