//! Why the console refuses a command, and how REST tells it.

use heddle_lab::Answer;
use serde_json::json;

/// A refusal of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No row has this id.
    NoSuchItem,
    /// A name, a value or a command is not understood. The text is the router's.
    Unclear(String),
    /// The command was understood and cannot be carried out.
    Failure(String),
    /// The group of the user lacks a policy for the command.
    NotPermitted,
    /// The command did not end in its time.
    Cut,
}

impl Refusal {
    pub(crate) fn unclear(text: impl Into<String>) -> Self {
        Self::Unclear(text.into())
    }

    pub(crate) fn failure(text: impl Into<String>) -> Self {
        Self::Failure(text.into())
    }

    pub(crate) fn unknown_parameter(name: &str) -> Self {
        Self::Unclear(format!("unknown parameter {name}"))
    }

    pub(crate) fn invalid(name: &str) -> Self {
        Self::Unclear(format!("invalid value for argument {name}"))
    }

    pub(crate) fn no_match(name: &str) -> Self {
        Self::Unclear(format!("input does not match any value of {name}"))
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::Unclear(format!("missing ={name}="))
    }

    /// As a script or the command line shows it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::NoSuchItem => "no such item (4)".to_owned(),
            Self::Unclear(text) => text.clone(),
            Self::Failure(text) => format!("failure: {text}"),
            Self::NotPermitted => "not enough permissions (9)".to_owned(),
            Self::Cut => "interrupted".to_owned(),
        }
    }

    /// As a command of REST answers it.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::NoSuchItem => refused(404, "Not Found", None),
            Self::NotPermitted => refused(500, "Internal Server Error", Some(&self.text())),
            Self::Cut => refused(400, "Bad Request", Some("Session closed")),
            Self::Unclear(_) | Self::Failure(_) => refused(400, "Bad Request", Some(&self.text())),
        }
    }

    /// As PATCH and DELETE answer it: they hide why the router refused.
    pub(crate) fn answer_of_row(&self) -> Answer {
        match self {
            Self::Failure(_) | Self::NotPermitted => {
                refused(400, "Bad Request", Some("missing or invalid resource identifier"))
            }
            other => other.answer(),
        }
    }
}

/// The body of an error. The number is the only value of the API that is not a string.
pub(crate) fn refused(status: u16, message: &str, detail: Option<&str>) -> Answer {
    let body = match detail {
        Some(detail) => json!({ "detail": detail, "error": status, "message": message }),
        None => json!({ "error": status, "message": message }),
    };
    Answer::json(status, &body)
}
