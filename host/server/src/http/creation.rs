//! The end of a request that creates an object.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use heddle_store::Tx;
use serde::Serialize;

use crate::app::{App, SharedApp};
use crate::http::conditional::tagged;
use crate::http::error::Error;

/// What is known of the request when its object has been created.
#[derive(Debug)]
pub struct Creation;

impl Creation {
    /// Commits, and answers 201 with the object, its `ETag` and where it is, such as `/sites/{id}`.
    pub(crate) async fn finish<T: Serialize>(
        self,
        tx: Tx,
        _app: &App,
        path: &str,
        object: &T,
    ) -> Result<Response, Error> {
        let mut response = tagged(StatusCode::CREATED, object)?;
        let location =
            HeaderValue::from_str(&format!("{}{path}", crate::http::PREFIX)).map_err(Error::internal)?;
        response.headers_mut().insert(header::LOCATION, location);
        tx.commit().await?;
        Ok(response)
    }
}

impl FromRequestParts<SharedApp> for Creation {
    type Rejection = Error;

    async fn from_request_parts(_: &mut Parts, _: &SharedApp) -> Result<Self, Error> {
        Ok(Self)
    }
}
