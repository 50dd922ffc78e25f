//! Fills templates of a session. A value cannot leave its place: JSON is filled
//! as values, addresses are percent-encoded, headers refuse control characters.

use std::collections::BTreeMap;

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_marketplace::template::{Part, Source, parse};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

pub(super) struct Values<'a> {
    pub(super) secrets: &'a [(String, Secret)],
    pub(super) captures: &'a BTreeMap<String, Secret>,
    pub(super) settings: &'a Value,
}

impl Values<'_> {
    /// Fills a text that its receiver escapes: headers, form fields, query pairs.
    pub(super) fn text(&self, template: &str) -> Result<String, Fault> {
        self.fill(template, |value| value)
    }

    /// A path or query: values are percent-encoded.
    pub(super) fn path(&self, template: &str) -> Result<String, Fault> {
        self.fill(template, |value| utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string())
    }

    /// The value of a cookie.
    pub(super) fn cookie(&self, template: &str) -> Result<String, Fault> {
        let text = self.text(template)?;
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || ";,\"\\".contains(c)) {
            return Err(unfit());
        }
        Ok(text)
    }

    /// A JSON string; a setting alone keeps its type.
    pub(super) fn json_text(&self, template: &str) -> Result<Value, Fault> {
        let parts = parse(template).map_err(|_| unfit())?;
        if let [Part::Place(Source::Settings, name)] = parts.as_slice() {
            return self.settings.get(name).cloned().ok_or_else(|| missing(name));
        }
        self.text(template).map(Value::String)
    }

    /// A JSON body whose strings are templates.
    pub(super) fn json(&self, template: &Value) -> Result<Value, Fault> {
        Ok(match template {
            Value::String(text) => self.json_text(text)?,
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.json(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let filled = fields.iter().map(|(key, value)| Ok((key.clone(), self.json(value)?)));
                Value::Object(filled.collect::<Result<_, Fault>>()?)
            }
            other => other.clone(),
        })
    }

    fn fill(&self, template: &str, escape: impl Fn(String) -> String) -> Result<String, Fault> {
        let mut text = String::new();
        for part in parse(template).map_err(|_| unfit())? {
            match part {
                Part::Text(plain) => text.push_str(&plain),
                Part::Place(source, name) => text.push_str(&escape(self.value(source, &name)?)),
            }
        }
        Ok(text)
    }

    fn value(&self, source: Source, name: &str) -> Result<String, Fault> {
        let found = match source {
            Source::Secret => self
                .secrets
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, secret)| secret.expose().to_owned()),
            Source::Session => self.captures.get(name).map(|secret| secret.expose().to_owned()),
            Source::Settings => self.settings.get(name).map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
        };
        found.ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> Fault {
    Fault::new(
        FaultKind::Authentication,
        format!("the login needs '{name}', which the controller does not have"),
    )
    .with_code("credential-incomplete")
}

fn unfit() -> Fault {
    Fault::new(FaultKind::Authentication, "a value of the login does not fit its place")
        .with_code("credential-unfit")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_stays_in_its_place() {
        let secrets = [("password".to_owned(), Secret::new("a\",\"admin\":\"1 /?;"))];
        let captures = [("sid".to_owned(), Secret::new("x;y"))].into();
        let settings = json!({"port": 8, "site": "a/b"});
        let values = Values { secrets: &secrets, captures: &captures, settings: &settings };
        let body = values.json(&json!({"p": "{{secret.password}}", "q": ["<{{secret.password}}>"], "n": "{{settings.port}}"})).unwrap();
        assert_eq!(body, json!({"p": "a\",\"admin\":\"1 /?;", "q": ["<a\",\"admin\":\"1 /?;>"], "n": 8}));
        assert_eq!(values.path("/s/{{settings.site}}/x").unwrap(), "/s/a%2Fb/x");
        assert!(values.cookie("{{session.sid}}").is_err());
        assert!(values.text("{{secret.none}}").is_err());
    }
}
