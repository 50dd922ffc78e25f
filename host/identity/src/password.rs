//! What a good password is.

use heddle_core::name::fold;
use heddle_core::secret::Secret;
use heddle_kernel::config::Config;
use heddle_kernel::http::error::Detail;

use crate::declarations::SignInSettings;

/// Most bytes of a password.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Shorter names may be part of a password: too many words contain them.
const NAME_CHARS_MIN: usize = 3;

/// Every rule that a new password does not meet.
///
/// `names` are the user's name and email: an attacker tries these first.
pub fn faults(config: &Config, field: &str, password: &Secret, names: &[&str]) -> Vec<Detail> {
    let text = password.expose();
    let length_min = config.of::<SignInSettings>().password_min_length as usize;
    let too_short = format!("password needs at least {length_min} characters");
    let too_long = format!("password must not be longer than {PASSWORD_BYTES_MAX} bytes");
    let any = |is: fn(char) -> bool| text.chars().any(is);
    let upper = !config.of::<SignInSettings>().password_require_uppercase || any(char::is_uppercase);
    let lower = !config.of::<SignInSettings>().password_require_lowercase || any(char::is_lowercase);
    let digit = !config.of::<SignInSettings>().password_require_digit || any(|c| c.is_ascii_digit());
    let special = !config.of::<SignInSettings>().password_require_special || any(|c| !c.is_alphanumeric());
    let rules = [
        (text.chars().count() >= length_min, too_short.as_str(), "too_short"),
        (text.len() <= PASSWORD_BYTES_MAX, too_long.as_str(), "too_long"),
        (upper, "password needs an upper-case letter", "missing_uppercase"),
        (lower, "password needs a lower-case letter", "missing_lowercase"),
        (digit, "password needs a digit", "missing_digit"),
        (special, "password needs a special character", "missing_special"),
        (
            !holds_name(text, names),
            "password must not contain the user name or the part of the email before the '@'",
            "contains_name",
        ),
    ];
    let failed = rules.into_iter().filter(|(holds, ..)| !holds);
    failed.map(|(_, message, kind)| Detail::new(field, message, kind)).collect()
}

fn holds_name(password: &str, names: &[&str]) -> bool {
    let password = fold(password);
    let locals = names.iter().map(|name| fold(name.split('@').next().unwrap_or(name).trim()));
    locals.filter(|name| name.chars().count() >= NAME_CHARS_MIN).any(|name| password.contains(&name))
}

#[cfg(test)]
mod tests;
