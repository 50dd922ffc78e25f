//! Bodies: how large they may be.

use heddle_core::bounds::json_bytes;
use heddle_core::fault::{Fault, FaultKind};

use super::request::{Body, Request};

/// Refuses a body that is larger than what the other side takes. Files do not count.
pub(super) fn check(request: &Request, most: usize) -> Result<(), Fault> {
    check_size(size(&request.body), most)
}

/// Refuses a body of so many bytes where they are too many.
pub(super) fn check_size(size: usize, most: usize) -> Result<(), Fault> {
    if size > most {
        let message = format!("the request body has {size} bytes, and {most} are the most");
        return Err(Fault::new(FaultKind::Generic, message).with_code("request-too-large"));
    }
    Ok(())
}

pub(super) fn size(body: &Body) -> usize {
    match body {
        Body::None => 0,
        Body::Json(value) => json_bytes(value),
        Body::Form(fields) => fields.iter().map(|(name, value)| name.len() + value.len() + 2).sum(),
        Body::Multipart(parts) => parts.iter().map(|part| part.held() + part.name.len() + 128).sum(),
        Body::Bytes(_, bytes) => bytes.len(),
        // It is streamed, and has a limit of its own since it was uploaded.
        Body::File(..) => 0,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::egress::tests::request;

    #[test]
    fn the_size_that_is_sent_is_what_counts() {
        let body = |text: &str| request(Method::POST, "/", Body::Json(json!({"a": text})));
        assert!(check(&body("12"), 10).is_ok());
        assert_eq!(check(&body("123"), 10).unwrap_err().code.as_deref(), Some("request-too-large"));
    }
}
