//! Events of users and of how they sign in.

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
