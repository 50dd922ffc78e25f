//! What `SMTP_URL` says of the mail server.

use std::net::IpAddr;

use heddle_core::secret::Secret;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// Port of a server that speaks TLS from the first byte (RFC 8314).
const PORT_WRAPPED: u16 = 465;
/// Port of a server that takes mails from its users (RFC 6409).
const PORT_SUBMISSION: u16 = 587;

const ACCEPTED: &str = "smtps://user:password@host:port or smtp://user:password@host:port, \
                        with '?tls=required' (the default) or '?tls=opportunistic' behind the second";
const LOOPBACK_ONLY: &str = "'?tls=opportunistic' only for a server on this host (localhost, 127.0.0.1, ::1): \
                             to others mails and the password go over TLS";

/// How the connection to the server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    /// TLS from the first byte.
    Wrapped,
    /// STARTTLS; without it nothing is sent.
    Required,
    /// STARTTLS where it is offered.
    Opportunistic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) security: Security,
    pub(crate) login: Option<(String, Secret)>,
}

impl Server {
    /// Reads the setting; the error says what is accepted, never what was given.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let accepted = || ACCEPTED.to_owned();
        let url = Url::parse(text).map_err(|_| accepted())?;
        let host = host(&url).ok_or_else(accepted)?;
        let (security, port) = match (url.scheme(), url.query()) {
            ("smtps", None) => (Security::Wrapped, PORT_WRAPPED),
            ("smtp", None | Some("tls=required")) => (Security::Required, PORT_SUBMISSION),
            ("smtp", Some("tls=opportunistic")) if is_loopback(&host) => {
                (Security::Opportunistic, PORT_SUBMISSION)
            }
            ("smtp", Some("tls=opportunistic")) => return Err(LOOPBACK_ONLY.to_owned()),
            _ => return Err(accepted()),
        };
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            ("", Some(_)) | (_, None) => return Err(accepted()),
            (user, Some(password)) => {
                let user = plain(user).ok_or_else(accepted)?;
                Some((user, Secret::new(plain(password).ok_or_else(accepted)?)))
            }
        };
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(accepted());
        }
        Ok(Self { host, port: url.port().unwrap_or(port), security, login })
    }
}

/// The host as certificates name it: an IPv6 address without brackets.
fn host(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain("") => None,
        Host::Domain(name) => {
            // The library leaves the addresses of unknown schemes as they are written.
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
            is_name.then(|| name.to_ascii_lowercase())
        }
        Host::Ipv4(ip) => Some(ip.to_string()),
        Host::Ipv6(ip) => Some(ip.to_string()),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn plain(encoded: &str) -> Option<String> {
    percent_decode_str(encoded).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, host: &str, port: u16, security: Security, login: Option<(&str, &str)>) {
        let login = login.map(|(user, password)| (user.to_owned(), Secret::new(password)));
        assert_eq!(
            Server::parse(text),
            Ok(Server { host: host.to_owned(), port, security, login }),
            "{text}"
        );
    }

    #[test]
    fn tls_is_the_rule_and_only_the_own_host_may_go_without() {
        check("smtps://mail.example.org", "mail.example.org", 465, Security::Wrapped, None);
        check("smtp://Mail.example.org/", "mail.example.org", 587, Security::Required, None);
        check("smtp://[2001:db8::1]:25?tls=required", "2001:db8::1", 25, Security::Required, None);
        check("smtp://localhost:25?tls=opportunistic", "localhost", 25, Security::Opportunistic, None);
        check("smtp://127.0.0.9?tls=opportunistic", "127.0.0.9", 587, Security::Opportunistic, None);
        check("smtp://[::1]?tls=opportunistic", "::1", 587, Security::Opportunistic, None);
        for remote in ["mail.example.org", "192.0.2.1", "localhost.example.org"] {
            let refused = Server::parse(&format!("smtp://{remote}?tls=opportunistic"));
            assert!(refused.is_err_and(|message| message.contains("localhost")), "{remote}");
        }
    }

    #[test]
    fn a_login_is_both_a_user_and_a_password() {
        let both = Some(("a@example.org", "p:/@%"));
        check(
            "smtp://a%40example.org:p%3A%2F%40%25@mail.example.org",
            "mail.example.org",
            587,
            Security::Required,
            both,
        );
        for half in ["smtp://a@mail.example.org", "smtp://:p@mail.example.org"] {
            assert!(Server::parse(half).is_err(), "{half}");
        }
    }

    #[test]
    fn what_is_no_mail_server_is_refused() {
        for text in [
            "",
            "mail.example.org",
            "http://mail.example.org",
            "smtp://",
            "smtp:mail.example.org",
            "smtps://mail.example.org?tls=opportunistic",
            "smtp://mail.example.org?tls=none",
            "smtp://mail.example.org?tls=required&x=1",
            "smtp://mail.example.org/path",
            "smtp://mail.example.org#x",
            "smtp://mail example.org",
            "smtp://mail.example.org:99999",
        ] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }
}
