//! What a user name and an email address look like.

const USERNAME_CHARS_MAX: usize = 64;
/// Longest email address (RFC 5321 section 4.5.3.1.3).
const EMAIL_BYTES_MAX: usize = 254;

/// A user name. It has no `@`, so that no one's user name can be another one's email.
pub(crate) fn parse_username(text: &str) -> Result<String, String> {
    let name = text.trim();
    let fits = (1..=USERNAME_CHARS_MAX).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if fits {
        Ok(name.to_owned())
    } else {
        Err("must have 1 to 64 letters, digits, dots, underscores and hyphens".to_owned())
    }
}

/// An email address, as far as its form goes; only a mail shows whether it is one.
pub(crate) fn parse_email(text: &str) -> Result<String, String> {
    let email = text.trim();
    let is_address = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.contains('@') && domain.split('.').all(|label| !label.is_empty())
    });
    let is_plain = !email.chars().any(|c| c.is_whitespace() || c.is_control());
    if is_address && is_plain && email.len() <= EMAIL_BYTES_MAX {
        Ok(email.to_owned())
    } else {
        Err("must be an email address such as 'ada@example.org'".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_cannot_look_like_an_email() {
        for name in ["admin", "a", "Ada.Lovelace-2", "jörg"] {
            assert_eq!(parse_username(name).as_deref(), Ok(name));
        }
        for name in ["", " ", "ada@example.org", "two words", &"x".repeat(65)] {
            assert!(parse_username(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_email_has_a_name_and_a_domain() {
        for email in ["ada@example.org", "a+b@localhost"] {
            assert_eq!(parse_email(email).as_deref(), Ok(email));
        }
        for email in ["", "ada", "@example.org", "ada@", "a@b@c", "a b@example.org", "ada@example..org"] {
            assert!(parse_email(email).is_err(), "{email}");
        }
    }
}
