//! Templates of session declarations: text with `{{secret.NAME}}`,
//! `{{session.NAME}}` and `{{settings.NAME}}`. Parses only; what fills them, and
//! with which escaping, is the host's part.

/// Where the value of a place comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A field of the controller's credential.
    Secret,
    /// Captured by an earlier step of the login.
    Session,
    /// A setting of the controller.
    Settings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Place(Source, String),
}

/// Why a template was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("template '{0}' has '{{{{' or '}}}}' without its counterpart")]
    Unbalanced(String),
    #[error("template place '{0}' is not accepted; secret.NAME, session.NAME and settings.NAME are")]
    Place(String),
}

/// Splits a template into its parts, in order.
pub fn parse(text: &str) -> Result<Vec<Part>, TemplateError> {
    let unbalanced = || TemplateError::Unbalanced(text.to_owned());
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        push_text(&mut parts, &rest[..start]).ok_or_else(unbalanced)?;
        let inner = &rest[start + 2..];
        let end = inner.find("}}").ok_or_else(unbalanced)?;
        parts.push(place(&inner[..end])?);
        rest = &inner[end + 2..];
    }
    push_text(&mut parts, rest).ok_or_else(unbalanced)?;
    Ok(parts)
}

/// `None` when the text closes what it did not open. A single `}` before the
/// next place, or nested JSON without a place, is plain text.
fn push_text(parts: &mut Vec<Part>, text: &str) -> Option<()> {
    if text.contains("}}") {
        return None;
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
    Some(())
}

fn place(inner: &str) -> Result<Part, TemplateError> {
    let refused = || TemplateError::Place(inner.to_owned());
    let (source, name) = inner.trim().split_once('.').ok_or_else(refused)?;
    let source = match source {
        "secret" => Source::Secret,
        "session" => Source::Session,
        "settings" => Source::Settings,
        _ => return Err(refused()),
    };
    if !is_name(name) {
        return Err(refused());
    }
    Ok(Part::Place(source, name.to_owned()))
}

/// Names of captures, secrets and settings.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
