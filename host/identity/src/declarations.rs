//! Events of users and of how they sign in, and the settings of that.

use heddle_kernel::http::access::Unscoped;

/// Why no scope opens the routes of signing in.
pub const SIGNING_IN: Unscoped =
    Unscoped("how a user signs in, and who may sign in elsewhere, is not a right that a user can pass on");

heddle_core::events! { pub EVENTS {
    USER_CREATED = "user.created", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    USER_UPDATED = "user.updated", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid", "changed": "strings" };
    USER_ROLE_CHANGED = "user.role_changed", "user", High,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid", "old_role": "string" };
    USER_REMOVED = "user.removed", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    USER_RESTORED = "user.restored", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    REFRESH_REUSE = "security.refresh_reuse", "security", High,
        { "user_id": "uuid", "username": "string", "session_id": "uuid", "spent_at": "string", "ip": "string" };
    ACCOUNT_LOCKED = "security.account_locked", "security", High,
        { "user_id": "uuid", "username": "string", "step": "string", "failures": "integer", "locked_until": "string", "ip": "string" };
    MFA_FAILED = "security.mfa_failed", "security", Normal,
        { "user_id": "uuid", "username": "string", "failures": "integer", "ip": "string" };
    MFA_ENABLED = "security.mfa_enabled", "security", Normal,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    MFA_DISABLED = "security.mfa_disabled", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    MFA_RESET = "security.mfa_reset", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    PASSWORD_CHANGED = "security.password_changed", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?", "way": "string", "sessions_revoked": "integer", "api_keys_revoked": "integer" };
    API_KEY_CREATED = "security.api_key_created", "security", High,
        { "user_id": "uuid", "username": "string", "api_key_id": "uuid", "name": "string", "scopes": "strings?", "expires_at": "string?" };
    API_KEY_REVOKED = "security.api_key_revoked", "security", Normal,
        { "user_id": "uuid", "username": "string", "api_key_id": "uuid", "name": "string" };
    ROLE_CHANGED = "security.role_changed", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?", "role": "string", "old_role": "string" };
} }

heddle_kernel::settings! {
    /// How long sessions last, and what passwords must be.
    pub struct SignInSettings {
        /// Minutes that an access token is good for.
        access_token_minutes: u32 = "ACCESS_TOKEN_EXPIRE_MINUTES", "30", from 1 to 1440;
        /// Days that a refresh token is good for.
        refresh_token_days: u32 = "REFRESH_TOKEN_EXPIRE_DAYS", "7", from 1 to 365;
        /// Fewest characters of a password, from 8 to 128.
        password_min_length: u32 = "PASSWORD_MIN_LENGTH", "12", from 8 to 128;
        /// A password needs an upper-case letter.
        password_require_uppercase: bool = "PASSWORD_REQUIRE_UPPERCASE", "true";
        /// A password needs a lower-case letter.
        password_require_lowercase: bool = "PASSWORD_REQUIRE_LOWERCASE", "true";
        /// A password needs a digit.
        password_require_digit: bool = "PASSWORD_REQUIRE_DIGIT", "true";
        /// A password needs a character that is neither a letter nor a digit.
        password_require_special: bool = "PASSWORD_REQUIRE_SPECIAL", "true";
        /// False where one-time codes cannot be trusted, as on a host with a wrong clock: users cannot set them up then.
        mfa_enrolment: bool = "MFA_ENROLMENT", "true";
    }
}
