//! The claims of a person, from the ID token and, where those are not enough, from the userinfo endpoint.

use serde_json::{Map, Value};

use super::super::account::Person;
use super::super::settings::Oidc;

const GROUPS_MAX: usize = 1_000;

pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// Takes the claims of a valid ID token.
    pub(super) fn of(proved: Map<String, Value>) -> Self {
        Self(proved)
    }

    pub(super) fn subject(&self) -> &str {
        self.text("sub").unwrap_or_default()
    }

    /// Whether a claim is missing that the userinfo endpoint may have.
    pub(super) fn lack(&self, settings: &Oidc, maps_groups: bool) -> bool {
        let mut wanted = vec!["email", "email_verified", settings.username_claim.as_str()];
        if maps_groups {
            wanted.push(&settings.groups_claim);
        }
        wanted.into_iter().any(|name| !self.0.contains_key(name))
    }

    /// Adds missing claims. An email and whether it is verified are taken from the same source.
    pub(super) fn complete(&mut self, mut more: Map<String, Value>) {
        if !(self.0.contains_key("email") && self.0.contains_key("email_verified"))
            && more.contains_key("email")
        {
            self.0.remove("email");
            self.0.remove("email_verified");
        } else {
            more.remove("email");
            more.remove("email_verified");
        }
        for (name, value) in more {
            self.0.entry(name).or_insert(value);
        }
    }

    pub(super) fn person(&self, settings: &Oidc) -> Person {
        let text = |name: &str| self.text(name).map(str::to_owned);
        Person {
            issuer: settings.issuer.clone(),
            subject: self.subject().to_owned(),
            username: text(&settings.username_claim),
            email: text("email"),
            email_is_verified: is_true(self.0.get("email_verified")),
            full_name: text("name"),
            groups: self.0.get(&settings.groups_claim).map(texts).unwrap_or_default(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

/// Some providers write it as a string.
fn is_true(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value == &Value::Bool(true) || value.as_str() == Some("true"))
}

/// An array of texts, or one text.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => {
            all.iter().filter_map(Value::as_str).take(GROUPS_MAX).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings() -> Oidc {
        serde_json::from_value(json!({ "issuer": "https://id", "client_id": "c", "redirect_uris": [] }))
            .unwrap()
    }

    fn claims(value: Value) -> Claims {
        Claims::of(value.as_object().unwrap().clone())
    }

    #[test]
    fn an_email_is_verified_by_the_place_that_names_it() {
        let mut half = claims(json!({ "sub": "a", "email": "victim@acme.test" }));
        assert!(half.lack(&settings(), false));
        let more =
            json!({ "sub": "a", "email": "own@example.test", "email_verified": true, "groups": "staff" });
        half.complete(more.as_object().unwrap().clone());
        let person = half.person(&settings());
        assert_eq!((person.email.as_deref(), person.email_is_verified), (Some("own@example.test"), true));
        assert_eq!(person.groups, ["staff"]);

        let mut half = claims(json!({ "sub": "a", "email": "victim@acme.test" }));
        half.complete(json!({ "email_verified": true }).as_object().unwrap().clone());
        assert!(!half.person(&settings()).email_is_verified, "of an email that it does not name");
    }

    #[test]
    fn what_the_token_says_wins() {
        let mut whole = claims(json!({
            "sub": "a", "email": "a@acme.test", "email_verified": false, "preferred_username": "a", "groups": ["x", 7],
        }));
        assert!(!whole.lack(&settings(), true));
        let more = json!({ "email": "b@acme.test", "email_verified": true, "preferred_username": "b", "name": "Ada" });
        whole.complete(more.as_object().unwrap().clone());
        let person = whole.person(&settings());
        assert_eq!((person.email.as_deref(), person.email_is_verified), (Some("a@acme.test"), false));
        assert_eq!((person.username.as_deref(), person.full_name.as_deref()), (Some("a"), Some("Ada")));
        assert_eq!(person.groups, ["x"]);
    }
}
