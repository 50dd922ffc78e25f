//! The passes over what devices answer, one by one, so that the benches can show that each is linear.

use heddle_core::fault::Fault;
use heddle_core::secret::Secret;

use crate::api::SecretBook;
use crate::egress::references::{self, Content, SecretFields};
use crate::egress::scrub;

/// Takes secrets out of an answer's body that repeats them; answers how many there were.
pub fn scrub(body: &mut Vec<u8>, secrets: &[Secret]) -> u32 {
    scrub::body(body, secrets)
}

/// Parses an answer's body and replaces the secrets in these fields by references.
///
/// # Errors
/// The body is no JSON, or has more values than are accepted.
pub fn replace(body: Vec<u8>, fields: &[String], key: &[u8; 32]) -> Result<Vec<u8>, Fault> {
    let content = Content::of(&body)?;
    let fields = SecretFields::of(fields);
    references::replace(body, content, (200, None), &fields, key, &mut SecretBook::default())
}

/// How many references to secrets occur in a text.
pub fn find(text: &str) -> usize {
    references::find(text).len()
}
