//! A file that is read while it comes: it need not fit into the memory.

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header;
use futures::StreamExt as _;

use crate::app::SharedApp;
use crate::http::access::Admission;
use crate::http::body;
use crate::http::error::Error;
use crate::http::extract::broken;

/// The body of a request, for routes that [stream a file](crate::http::routes::Doc::streams).
pub struct Incoming {
    app: SharedApp,
    admission: Admission,
    content_type: Option<String>,
    rest: BodyDataStream,
    came: usize,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("came", &self.came).finish_non_exhaustive()
    }
}

impl FromRequest<SharedApp> for Incoming {
    type Rejection = Error;

    async fn from_request(mut request: Request, app: &SharedApp) -> Result<Self, Error> {
        let admission = request.extensions_mut().remove::<Admission>();
        let admission = admission.ok_or_else(|| Error::internal("the route does not stream its body"))?;
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.map(|text| text.trim().to_owned());
        let rest = std::mem::replace(request.body_mut(), Body::empty()).into_data_stream();
        Ok(Self { app: app.clone(), admission, content_type, rest, came: 0 })
    }
}

impl Incoming {
    /// The media type that the client gave.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// The bytes that came next; `None` at the end.
    ///
    /// # Errors
    /// 413 where the body is larger than the route takes, 400 where it comes too slowly or breaks off, and what a request
    /// is refused with whose caller lost the right to send it before the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(next) = self.rest.next().await else {
            self.admission.again(&self.app).await?;
            return Ok(None);
        };
        let bytes = next.map_err(|error| broken(&error))?;
        self.came += bytes.len();
        if self.came > self.admission.body_bytes_max() {
            return Err(body::too_large(self.admission.body_bytes_max()));
        }
        Ok(Some(bytes))
    }
}
