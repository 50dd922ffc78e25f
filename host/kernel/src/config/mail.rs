//! What mails need: a server, a sender, and the address that links in them begin with.

use lettre::message::Mailbox;
use url::{Host, Url};

use super::smtp::Server;
use super::{Config, ConfigError, Environment};

const FROM_ACCEPTED: &str = "an address such as 'heddle@example.org' or 'Heddle <heddle@example.org>'";
const PUBLIC_ACCEPTED: &str =
    "the address of the service, such as https://heddle.example.org: no user, no path, no query, no fragment";
const PUBLIC_REQUIRED: &str =
    "the address of the service, such as https://heddle.example.org, for links in mails";

/// So that a link fits into a line of a mail.
const PUBLIC_URL_BYTES_MAX: usize = 500;

impl Config {
    pub(super) fn check_mail(&self, faults: &mut Vec<ConfigError>) {
        if let Some(text) = &self.public_url
            && !self.is_public_url(text)
        {
            let accepted = match self.environment {
                Environment::Development => PUBLIC_ACCEPTED.to_owned(),
                Environment::Staging | Environment::Production => format!("{PUBLIC_ACCEPTED}, with https"),
            };
            faults.push(ConfigError::Value { name: "PUBLIC_URL", value: text.clone(), accepted });
        }
        if let Some(text) = &self.smtp_from
            && text.parse::<Mailbox>().is_err()
        {
            faults.push(ConfigError::Value {
                name: "SMTP_FROM",
                value: text.clone(),
                accepted: FROM_ACCEPTED.to_owned(),
            });
        }
        let Some(url) = &self.smtp_url else { return };
        if let Err(accepted) = Server::parse(url.expose()) {
            // It may hold a password: it is not shown.
            faults.push(ConfigError::Value { name: "SMTP_URL", value: "(hidden)".to_owned(), accepted });
        }
        if self.smtp_from.is_none() {
            faults.push(ConfigError::Value {
                name: "SMTP_FROM",
                value: String::new(),
                accepted: format!("with SMTP_URL {FROM_ACCEPTED}"),
            });
        }
        if self.public_url.is_none() && self.environment != Environment::Development {
            faults.push(ConfigError::Required {
                name: "PUBLIC_URL",
                environment: self.environment,
                accepted: PUBLIC_REQUIRED,
            });
        }
    }

    /// Links carry secrets: outside development they go nowhere but over HTTPS.
    fn is_public_url(&self, text: &str) -> bool {
        let may_be_plain = self.environment == Environment::Development;
        Url::parse(text).is_ok_and(|url| {
            (url.scheme() == "https" || url.scheme() == "http" && may_be_plain)
                && url.as_str().len() <= PUBLIC_URL_BYTES_MAX
                && url.username().is_empty()
                && url.password().is_none()
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
        })
    }

    /// Returns the start of all links, without a slash at the end; it is never taken from a request.
    pub fn link_base(&self) -> String {
        match self.public_url.as_deref().map(Url::parse) {
            // As the library writes it: in ASCII, whatever was given.
            Some(Ok(url)) => url.as_str().trim_end_matches('/').to_owned(),
            _ if self.bind_addr.ip().is_unspecified() => {
                format!("http://localhost:{}", self.bind_addr.port())
            }
            _ => format!("http://{}", self.bind_addr),
        }
    }

    /// The host of [`Config::link_base`].
    pub(crate) fn link_host(&self) -> Option<Host> {
        Url::parse(&self.link_base()).ok().and_then(|url| url.host().map(|host| host.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::ConfigErrors;

    const KEY: &str = "kD93nfQ0sLq81mZx7vTbW2yRc5uHa6Je4PgX";
    const FROM: (&str, &str) = ("SMTP_FROM", "Heddle <heddle@example.org>");

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Config::from_maps(&map, &BTreeMap::new(), &[])
    }

    fn production(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let base = [("ENVIRONMENT", "production"), ("SECRET_KEY", KEY), ("ENCRYPTION_KEY", KEY)];
        read(&[base.as_slice(), pairs].concat())
    }

    #[track_caller]
    fn refused(result: Result<Config, ConfigErrors>, words: &[&str]) {
        let message = result.expect_err("is refused").to_string();
        for word in words {
            assert!(message.contains(word), "'{message}' names '{word}'");
        }
    }

    #[test]
    fn mail_needs_a_sender_and_outside_development_an_address_for_links() {
        let server = ("SMTP_URL", "smtps://mail.example.org");
        refused(read(&[server]), &["SMTP_FROM", "heddle@example.org"]);
        read(&[server, FROM]).unwrap();
        refused(production(&[server, FROM]), &["PUBLIC_URL", "production", "https://heddle.example.org"]);
        production(&[server, FROM, ("PUBLIC_URL", "https://heddle.example.org")]).unwrap();
        refused(read(&[server, ("SMTP_FROM", "heddle")]), &["SMTP_FROM", "heddle@example.org"]);
        let injected = "Heddle <heddle@example.org>\r\nBcc: x@example.org";
        refused(read(&[server, ("SMTP_FROM", injected)]), &["SMTP_FROM"]);
        // Nothing is needed where no mail is sent.
        production(&[]).unwrap();
    }

    #[test]
    fn a_mail_servers_password_is_not_shown() {
        let wrong = "smtp://heddle:hunter2@mail.example.org?tls=maybe";
        let message = read(&[("SMTP_URL", wrong), FROM]).expect_err("is refused").to_string();
        assert!(message.contains("SMTP_URL") && !message.contains("hunter2"), "{message}");
        let right = read(&[("SMTP_URL", "smtp://heddle:hunter2@mail.example.org"), FROM]).unwrap();
        assert!(!format!("{right:?}").contains("hunter2"));
    }

    #[test]
    fn links_begin_with_an_address_that_carries_nothing_else() {
        for wrong in
            ["heddle.example.org", "ftp://x.org", "https://u@x.org", "https://x.org?a", "https://x.org/#a"]
        {
            refused(read(&[("PUBLIC_URL", wrong)]), &["PUBLIC_URL", wrong]);
        }
        refused(production(&[("PUBLIC_URL", "http://heddle.example.org")]), &["PUBLIC_URL", "https"]);
        let base = |pairs: &[(&str, &str)]| read(pairs).unwrap().link_base();
        assert_eq!(base(&[("PUBLIC_URL", "https://x.org/")]), "https://x.org");
        refused(production(&[("PUBLIC_URL", "https://x.org/heddle")]), &["PUBLIC_URL", "no path"]);
        assert_eq!(base(&[("PUBLIC_URL", "https://Jörg.example")]), "https://xn--jrg-sna.example");
        let long = format!("https://{}.org", "x.".repeat(300));
        refused(read(&[("PUBLIC_URL", &long)]), &["PUBLIC_URL"]);
        assert_eq!(base(&[]), "http://127.0.0.1:8080");
        assert_eq!(base(&[("BIND_ADDR", "0.0.0.0:80")]), "http://localhost:80");
    }
}
