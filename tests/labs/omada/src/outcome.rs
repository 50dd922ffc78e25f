//! What a call comes to: a result in the vendor's envelope, or one of the vendor's codes.

use serde_json::{Value, json};

/// A result (null where the vendor answers none), or a failure.
pub(crate) type Outcome = Result<Value, Failure>;

/// A code of the vendor; the status is 200 unless the vendor is known to send another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) status: u16,
}

pub(crate) const GENERAL: i64 = -1;
pub(crate) const INVALID: i64 = -1001;
pub(crate) const WRONG_METHOD: i64 = -1004;
pub(crate) const SIGNED_OUT: i64 = -1200;
pub(crate) const UNSUPPORTED: i64 = -1600;
pub(crate) const SKIPPED: i64 = -1619;
pub(crate) const NO_CONTROLLER: i64 = -7131;
pub(crate) const TOO_MANY: i64 = -7132;
pub(crate) const WRONG_PASSWORD: i64 = -30109;
pub(crate) const BACKUP_RUNS: i64 = -30301;
pub(crate) const NO_SITE: i64 = -33000;
pub(crate) const SITE_BUSY: i64 = -33004;
pub(crate) const NAME_TAKEN: i64 = -33006;
pub(crate) const NOT_FOUND_YET: i64 = -39000;
pub(crate) const WRONG_CLIENT: i64 = -44106;
pub(crate) const TOKEN_EXPIRED: i64 = -44112;
pub(crate) const TOKEN_INVALID: i64 = -44113;
pub(crate) const REFRESH_EXPIRED: i64 = -44114;
pub(crate) const WRONG_SURFACE: i64 = -44116;
pub(crate) const NEEDS_CODE_MODE: i64 = -44118;
pub(crate) const NEEDS_PRO: i64 = -44119;

/// Codes that say nothing about the object: any operation may answer them.
const COMMON: [i64; 14] =
    [-1, -1001, -1004, -1005, -1300, -1600, -7131, -7132, -30028, -33000, -33004, -33011, -44111, -44112];

impl Failure {
    pub(crate) fn new(code: i64) -> Self {
        Self { code, message: message(code).to_owned(), status: 200 }
    }

    pub(crate) fn with(code: i64, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::new(code) }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"errorCode": self.code, "msg": self.message})
    }
}

/// The envelope of a result.
pub(crate) fn envelope(outcome: &Outcome) -> Value {
    match outcome {
        Ok(Value::Null) => json!({"errorCode": 0, "msg": "Success."}),
        Ok(result) => json!({"errorCode": 0, "msg": "Success.", "result": result}),
        Err(failure) => failure.to_json(),
    }
}

/// The first code of a route that is about the object, with preferred ones first.
pub(crate) fn own_code(codes: &[i64], preferred: &[i64]) -> Option<i64> {
    let wanted = preferred.iter().find(|code| codes.contains(code));
    wanted.or_else(|| codes.iter().find(|code| !COMMON.contains(code))).copied()
}

fn message(code: i64) -> &'static str {
    match code {
        INVALID => "Invalid request parameters.",
        WRONG_METHOD => "Unsupported request method.",
        SIGNED_OUT => "You have been logged out.",
        UNSUPPORTED => "Unsupported request path.",
        SKIPPED => "The action was not executed.",
        NO_CONTROLLER => "The controller does not exist.",
        TOO_MANY => "Too many requests.",
        WRONG_PASSWORD => "Invalid username or password.",
        BACKUP_RUNS => "A backup is running.",
        NO_SITE => "This site does not exist.",
        SITE_BUSY => "The site is busy.",
        NAME_TAKEN | -33506 => "This name already exists.",
        WRONG_CLIENT => "The client is invalid.",
        TOKEN_EXPIRED => "The access token has expired.",
        TOKEN_INVALID => "The access token is invalid.",
        REFRESH_EXPIRED => "The refresh token has expired.",
        WRONG_SURFACE => "This credential is not accepted here.",
        NEEDS_CODE_MODE => "The authorization code mode is required.",
        NEEDS_PRO => "Not supported on this controller.",
        -39050 | -39303 | -39501 | -39700 => "The device does not exist.",
        -39701 => "The port does not exist.",
        _ => "The request failed.",
    }
}
