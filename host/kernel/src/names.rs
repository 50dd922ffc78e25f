//! What a user name and an email address look like.

use heddle_core::name::{has_hidden, mixed_scripts, normalize};

/// Most characters of a user name, in the form in which it is kept.
pub const USERNAME_CHARS_MAX: usize = 64;
/// Longest email address (RFC 5321 section 4.5.3.1.3).
pub const EMAIL_BYTES_MAX: usize = 254;
/// A name, `@` and a domain.
pub const EMAIL_BYTES_MIN: usize = 3;

/// Longest text that is brought into the form of names.
const TEXT_BYTES_MAX: usize = 1_024;

/// A user name, in the form in which it is kept. It has no `@`, so that no user name can be another user's email.
pub fn parse_username(text: &str) -> Result<String, String> {
    let name = if text.len() <= TEXT_BYTES_MAX { normalize(text.trim()) } else { String::new() };
    let fits = (1..=USERNAME_CHARS_MAX).contains(&name.chars().count())
        && name.chars().all(is_name_character)
        && !has_hidden(&name);
    if !fits {
        return Err(format!(
            "must have 1 to {USERNAME_CHARS_MAX} letters, digits, dots, underscores and hyphens"
        ));
    }
    refuse_look_alike(&name)?;
    Ok(name)
}

/// What a user name may hold.
pub fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Refuses a name with letters of two scripts: it can look like another name, letter for letter.
fn refuse_look_alike(name: &str) -> Result<(), String> {
    match mixed_scripts(name) {
        None => Ok(()),
        Some((one, other)) => Err(format!(
            "must not mix {one} and {other} letters, by which a name can look like another one: use letters of one script"
        )),
    }
}

/// An email address, as far as its form goes; only a mail shows whether it is one.
pub fn parse_email(text: &str) -> Result<String, String> {
    let email = text.trim();
    let is_address = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.contains('@') && domain.split('.').all(|label| !label.is_empty())
    });
    let is_plain = !email.chars().any(char::is_whitespace) && !has_hidden(email);
    if email.len() > EMAIL_BYTES_MAX {
        return Err(format!("must not have more than {EMAIL_BYTES_MAX} bytes"));
    }
    if !is_address || !is_plain {
        return Err("must be an email address such as 'ada@example.org'".to_owned());
    }
    // Each part by itself: a name in one script at a domain in another is how mail is written in many countries.
    for part in email.split(['@', '.']) {
        refuse_look_alike(part)?;
    }
    Ok(email.to_owned())
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
    fn a_name_that_could_look_like_another_is_refused_with_the_reason() {
        // Their first letters are Cyrillic and Greek.
        for (name, scripts) in
            [("аdmin", "Cyrillic and Latin"), ("αdmin", "Greek and Latin"), ("ada.аda", "Latin and Cyrillic")]
        {
            let message = parse_username(name).unwrap_err();
            assert!(message.contains(scripts), "{name}: {message}");
            assert!(parse_email(&format!("{name}@example.org")).is_err());
        }
        assert!(parse_email("ada@exаmple.org").is_err(), "a domain with one Cyrillic letter");
        for email in ["иван@example.org", "иван.петров@почта.рф"] {
            assert_eq!(parse_email(email).as_deref(), Ok(email));
        }
        assert_eq!(parse_username("ｊo\u{308}rg").as_deref(), Ok("jörg"), "kept in one form");
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
