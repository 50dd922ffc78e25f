//! Bodies: how large they may be.

use heddle_core::fault::{Fault, FaultKind};

use super::request::{Body, Request};

/// Refuses a body that is larger than the controller takes. Files do not count.
pub(super) fn check(request: &Request, most: usize) -> Result<(), Fault> {
    let size = size(&request.body);
    if size > most {
        return Err(Fault::new(
            FaultKind::Generic,
            format!("the request body has {size} bytes, the controller takes {most}"),
        )
        .with_code("request-too-large"));
    }
    Ok(())
}

fn size(body: &Body) -> usize {
    match body {
        Body::None => 0,
        Body::Json(value) => {
            let mut count = Count(0);
            serde_json::to_writer(&mut count, value).expect("counting bytes cannot fail");
            count.0
        }
        Body::Form(fields) => fields.iter().map(|(name, value)| name.len() + value.len() + 2).sum(),
        Body::Multipart(parts) => parts.iter().map(|part| part.held() + part.name.len() + 128).sum(),
        Body::Bytes(_, bytes) => bytes.len(),
        // It is streamed, and has a limit of its own since it was uploaded.
        Body::File(..) => 0,
    }
}

struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
