//! Whether an ID token proves who signs in (`OpenID` Connect Core, sections 3.1.3.7 and 3.1.3.8).
//!
//! The provider's key decides which algorithm may verify a token, never the token itself. So no unsigned token is
//! accepted, and none that was signed with a public key as a shared secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq as _;

/// Seconds that two clocks may differ.
const LEEWAY_SECS: i64 = 60;
/// A token is made when its code is redeemed, so an older one belongs to another sign-in.
const AGE_SECS_MAX: i64 = 600;
/// 2048 bits.
const RSA_MODULUS_BYTES_MIN: usize = 256;
/// `OpenID` Connect Core, section 2.
const SUBJECT_BYTES_MAX: usize = 255;

heddle_core::words! {
    /// Why an answer is not valid. For the log and the audit log; the person who signs in does not see it.
    pub enum Unproved {
        /// The provider does not know the code, or no longer knows it.
        Code = "code",
        /// The answer comes from another provider.
        Issuer = "issuer",
        Malformed = "malformed",
        /// None of the provider's keys may be used with the algorithm.
        Algorithm = "algorithm",
        /// No key of the provider fits the signature.
        Key = "key",
        Audience = "audience",
        AuthorizedParty = "authorized_party",
        Expired = "expired",
        NotYetValid = "not_yet_valid",
        Nonce = "nonce",
        AccessToken = "access_token",
        Subject = "subject",
        /// The userinfo endpoint answers about another person.
        UserInfo = "user_info",
    }
}

/// The values that the token must contain.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// The access token that came with the ID token.
    pub(super) access_token: Option<&'a str>,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// Verifies a token and returns its claims.
///
/// # Errors
/// [`Unproved::Key`] when newer keys of the provider could make a difference.
pub(super) fn verify(
    token: &str,
    keys: &[Jwk],
    expected: &Expected<'_>,
) -> Result<Map<String, Value>, Unproved> {
    // An unsigned token has no known algorithm.
    let header = decode_header(token).map_err(|_| Unproved::Algorithm)?;
    let is_shared = matches!(header.alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512);
    if is_shared {
        return Err(Unproved::Algorithm);
    }
    let claims = signed_by_one(token, &header, keys, expected)?;
    check_times(&claims, expected.now)?;
    check_audience(&claims, expected.client_id)?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let nonce = text("nonce").ok_or(Unproved::Nonce)?;
    if !bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes())) {
        return Err(Unproved::Nonce);
    }
    if let (Some(hash), Some(access_token)) = (claims.get("at_hash"), expected.access_token)
        && hash.as_str() != Some(half_hash(header.alg, access_token).as_str())
    {
        return Err(Unproved::AccessToken);
    }
    let fits = text("sub").is_some_and(|subject| !subject.is_empty() && subject.len() <= SUBJECT_BYTES_MAX);
    if fits { Ok(claims) } else { Err(Unproved::Subject) }
}

/// Whether signatures can be verified with this key.
pub(super) fn is_usable(key: &Jwk) -> bool {
    let is_strong = match &key.algorithm {
        AlgorithmParameters::RSA(parts) => {
            let modulus = URL_SAFE_NO_PAD.decode(parts.n.trim_end_matches('=')).unwrap_or_default();
            modulus.iter().skip_while(|byte| **byte == 0).count() >= RSA_MODULUS_BYTES_MIN
        }
        _ => true,
    };
    is_strong && !algorithms(key).is_empty()
}

/// Returns the algorithms for which this key may be used.
fn algorithms(key: &Jwk) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    if !matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return Vec::new();
    }
    let of_kind: &[Algorithm] = match &key.algorithm {
        AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(parts) => match parts.curve {
            EllipticCurve::P256 => &[ES256],
            EllipticCurve::P384 => &[ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(parts) if parts.curve == EllipticCurve::Ed25519 => &[EdDSA],
        _ => &[],
    };
    let is_named = |algorithm: &Algorithm| {
        key.common.key_algorithm.is_none_or(|named| Algorithm::try_from(named).is_ok_and(|n| n == *algorithm))
    };
    of_kind.iter().copied().filter(is_named).collect()
}

/// Returns the claims when one of the possible keys has signed the token.
fn signed_by_one(
    token: &str,
    header: &Header,
    keys: &[Jwk],
    expected: &Expected<'_>,
) -> Result<Map<String, Value>, Unproved> {
    let mut validation = Validation::new(header.alg);
    validation.set_audience(&[expected.client_id]);
    validation.set_issuer(&[expected.issuer]);
    validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
    // Checked against the service's own clock, in `check_times`.
    validation.validate_exp = false;
    let may_have = |key: &&Jwk| {
        let is_named = match (&header.kid, &key.common.key_id) {
            (Some(wanted), Some(own)) => wanted == own,
            _ => true,
        };
        is_named && algorithms(key).contains(&header.alg)
    };
    for key in keys.iter().filter(may_have) {
        let Ok(decoding) = DecodingKey::from_jwk(key) else { continue };
        match decode::<Map<String, Value>>(token, &decoding, &validation) {
            Ok(decoded) => return Ok(decoded.claims),
            Err(error) => match error.kind() {
                ErrorKind::InvalidSignature => {}
                ErrorKind::InvalidIssuer => return Err(Unproved::Issuer),
                ErrorKind::InvalidAudience => return Err(Unproved::Audience),
                _ => return Err(Unproved::Malformed),
            },
        }
    }
    Err(Unproved::Key)
}

fn check_times(claims: &Map<String, Value>, now: i64) -> Result<(), Unproved> {
    let seconds = |name: &str| claims.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact in a double for ages")]
    let (now, leeway, age) = (now as f64, LEEWAY_SECS as f64, AGE_SECS_MAX as f64);
    let expires = seconds("exp").ok_or(Unproved::Malformed)?;
    let issued = seconds("iat").ok_or(Unproved::Malformed)?;
    if expires + leeway <= now || issued + age + leeway <= now {
        return Err(Unproved::Expired);
    }
    let begins = seconds("nbf").unwrap_or(issued);
    if issued > now + leeway || begins > now + leeway { Err(Unproved::NotYetValid) } else { Ok(()) }
}

/// With several audiences, the token must name this client as its authorized party.
fn check_audience(claims: &Map<String, Value>, client_id: &str) -> Result<(), Unproved> {
    let is_shared = claims.get("aud").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
    match claims.get("azp") {
        Some(party) if party.as_str() == Some(client_id) => Ok(()),
        Some(_) => Err(Unproved::AuthorizedParty),
        None if is_shared => Err(Unproved::AuthorizedParty),
        None => Ok(()),
    }
}

/// Returns the left half of the access token's hash, with the hash function of the token's algorithm.
fn half_hash(algorithm: Algorithm, access_token: &str) -> String {
    use Algorithm::{ES384, EdDSA, PS384, PS512, RS384, RS512};
    let bytes = access_token.as_bytes();
    let digest = match algorithm {
        RS384 | PS384 | ES384 => Sha384::digest(bytes).to_vec(),
        RS512 | PS512 | EdDSA => Sha512::digest(bytes).to_vec(),
        _ => Sha256::digest(bytes).to_vec(),
    };
    URL_SAFE_NO_PAD.encode(&digest[..digest.len() / 2])
}

#[cfg(test)]
mod tests;
