//! One-time codes by the time (RFC 6238): SHA-1, six digits, thirty seconds, which every authenticator app knows.

use heddle_core::Timestamp;
use heddle_core::secret::{Secret, random_bytes};
use heddle_kernel::http::error::Error;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};
use totp_rs::{Algorithm, Builder, Totp};

/// The name that apps show next to the user's name.
const ISSUER: &str = "Heddle";
const DIGITS: u8 = 6;
const STEP_SECS: u64 = 30;
/// Steps before and after now whose codes are accepted: clocks differ, and people type slowly.
const SKEW: u16 = 1;
/// Bytes of a secret: those of the hash (RFC 4226 section 4, R6).
pub(super) const SECRET_BYTES: usize = 20;
/// Pixels; it is an SVG, which scales.
const QR_PIXELS: u32 = 240;

/// The generator of one user.
pub(super) struct Generator(Totp);

/// The data from which an authenticator app takes the secret.
pub(super) struct Enrolment {
    pub(super) secret_base32: String,
    pub(super) otpauth_uri: String,
    pub(super) qr_svg: String,
}

pub(super) fn new_secret() -> zeroize::Zeroizing<[u8; SECRET_BYTES]> {
    random_bytes::<SECRET_BYTES>()
}

impl Generator {
    pub(super) fn new(secret: &[u8], account: &str) -> Result<Self, Error> {
        let builder = Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(DIGITS)
            .with_step_duration(STEP_SECS)
            .with_skew(SKEW)
            .with_secret(secret.to_vec())
            // The separator of an otpauth URI's label.
            .with_account_name(account.replace(':', " "))
            .with_issuer(Some(ISSUER));
        builder.build().map(Self).map_err(Error::internal)
    }

    /// The time step of a code that is good now.
    pub(super) fn step_of(&self, code: &Secret, now: Timestamp) -> Option<i64> {
        let seconds = u64::try_from(now.timestamp()).ok()?;
        self.0.check(code.expose(), seconds).and_then(|step| i64::try_from(step).ok())
    }

    pub(super) fn enrolment(&self) -> Result<Enrolment, Error> {
        let otpauth_uri = self.0.to_url().map_err(Error::internal)?;
        let code = QrCode::with_error_correction_level(&otpauth_uri, EcLevel::M).map_err(Error::internal)?;
        let qr_svg = code.render::<svg::Color<'_>>().min_dimensions(QR_PIXELS, QR_PIXELS).build();
        Ok(Enrolment { secret_base32: self.0.secret().to_base32(), otpauth_uri, qr_svg })
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;

    /// Secret of RFC 6238, appendix B.
    const RFC_SECRET: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> Timestamp {
        DateTime::<Utc>::from_timestamp(seconds, 0).unwrap()
    }

    #[track_caller]
    fn check(seconds: i64, eight_digits: &str) {
        let generator = Generator::new(RFC_SECRET, "ada").unwrap();
        // The six-digit code is the end of the longer one (RFC 4226 section 5.3).
        let code = Secret::new(&eight_digits[2..]);
        let step = seconds / 30;
        assert_eq!(generator.step_of(&code, at(seconds)), Some(step), "{seconds}");
        for (later, expected) in [(-30, Some(step)), (30, Some(step)), (-61, None), (61, None)] {
            let now = at(seconds) + TimeDelta::seconds(later);
            if now.timestamp() >= 0 {
                assert_eq!(generator.step_of(&code, now), expected, "{seconds} {later}");
            }
        }
    }

    #[test]
    fn the_codes_are_those_of_rfc_6238() {
        check(59, "94287082");
        check(1_111_111_109, "07081804");
        check(1_111_111_111, "14050471");
        check(1_234_567_890, "89005924");
        check(2_000_000_000, "69279037");
        check(20_000_000_000, "65353130");
    }

    #[test]
    fn what_is_no_code_is_none() {
        let generator = Generator::new(RFC_SECRET, "ada").unwrap();
        for text in ["", "28708", "2870822", "28708a", "２８７０８２", "287 082"] {
            assert_eq!(generator.step_of(&Secret::new(text), at(59)), None, "{text}");
        }
    }

    #[test]
    fn apps_are_told_the_name_and_the_secret() {
        let enrolment = Generator::new(RFC_SECRET, "ada:l o@acme").unwrap().enrolment().unwrap();
        assert_eq!(enrolment.secret_base32, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = url::Url::parse(&enrolment.otpauth_uri).unwrap();
        assert_eq!((uri.scheme(), uri.host_str()), ("otpauth", Some("totp")));
        assert!(enrolment.otpauth_uri.contains("secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"));
        assert!(enrolment.otpauth_uri.contains("issuer=Heddle"), "{}", enrolment.otpauth_uri);
        assert!(enrolment.qr_svg.contains("<svg") && !enrolment.qr_svg.contains("<script"));
    }
}
