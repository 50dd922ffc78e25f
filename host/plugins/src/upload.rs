//! A package as it is sent: as the body itself, or as the field of a form.

use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::header;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::too_large;
use schemars::JsonSchema;

/// The media type of a package.
pub(crate) const ZIP: &str = "application/zip";
/// The field of a form that holds it.
const FIELD: &str = "package";

/// The form that holds a package.
#[derive(JsonSchema)]
#[schemars(rename = "PluginPackageForm")]
pub(crate) struct Form {
    /// The ZIP file, at most 32 MiB.
    #[expect(dead_code, reason = "only its schema is used")]
    #[schemars(with = "String", extend("format" = "binary"))]
    package: Bytes,
}

/// The bytes of a package. The guard of the route has read the body within its limit.
#[derive(Debug)]
pub(crate) struct Upload(pub(crate) Bytes);

impl FromRequest<SharedApp> for Upload {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case(ZIP) {
            let body = Bytes::from_request(request, app).await;
            return body.map(Self).map_err(|rejection| too_large(&rejection));
        }
        if !essence.eq_ignore_ascii_case("multipart/form-data") {
            let message = "body must be a package: send 'content-type: application/zip', or a form with the field 'package'";
            return Err(refused("content-type", message));
        }
        let mut form = Multipart::from_request(request, app).await.map_err(|_| broken())?;
        let mut found = None;
        while let Some(field) = form.next_field().await.map_err(|_| broken())? {
            let is_package = field.name() == Some(FIELD);
            let bytes = field.bytes().await.map_err(|_| broken())?;
            if is_package && found.replace(bytes).is_some() {
                return Err(broken());
            }
        }
        found.map(Self).ok_or_else(broken)
    }
}

fn broken() -> Error {
    refused(FIELD, "the form must have one file in the field 'package'")
}

fn refused(field: &str, message: &str) -> Error {
    Error::Validation(vec![Detail::new(field, message, "value_error")])
}
