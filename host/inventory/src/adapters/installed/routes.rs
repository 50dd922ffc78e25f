//! Routes that install packages, list those of an adapter, and put the one before back in service.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, File, Media, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_marketplace::ARCHIVE_BYTES_MAX;
use heddle_runtime::Adapter;
use heddle_store::installed_packages;
use schemars::JsonSchema;
use serde::Deserialize;

use super::install::install;
use super::roll_back::roll_back;
use super::view::{Judged, Outcome, Package, Packages};
use super::{kept, to_its_end};

/// A package is sent as one ZIP archive.
#[derive(Debug)]
struct Zip;

impl Media for Zip {
    const TYPE: &'static str = "application/zip";
}

/// What is asked of a package that is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Only judges the package and says what it would change: what a person agrees to before it is installed.
    #[serde(default)]
    dry_run: bool,
}

/// The example of an id is an adapter that is installed.
pub(in crate::adapters) fn routes(installed: &[String]) -> Routes {
    let example = installed.first().map(String::as_str);
    Routes::default()
        .post(
            "/adapters/packages",
            Access::SuperAdmin,
            send,
            doc("Install the package of an adapter in every process, or only judge it; calls in flight end on the package before")
                .named("install_adapter_package")
                .takes(Zip::TYPE, ARCHIVE_BYTES_MAX)
                .query::<Asked>()
                .answers::<Judged>(200)
                .also_answers::<Judged>(201),
        )
        .get(
            "/adapters/{adapter_id}/packages",
            Access::SuperAdmin,
            list,
            doc("Packages of an adapter that served, which serves, and which are kept").answers::<Packages>(200).example("adapter_id", example),
        )
        .post(
            "/adapters/{adapter_id}/rollback",
            Access::SuperAdmin,
            back,
            doc("Put the package that served before back in service, in every process, until another one is installed")
                .named("roll_back_adapter")
                .answers::<Judged>(200)
                .example("adapter_id", example),
        )
}

/// 201 where it is installed now; 200 where nothing had to be done, or was asked for.
async fn send(
    by: By,
    Params(asked): Params<Asked>,
    file: File<Zip>,
) -> Result<(StatusCode, Answer<Judged>), Error> {
    let app = by.app.clone();
    let work = async move { install(&by, file.0, asked.dry_run).await };
    let judged = to_its_end(&app, work).await?;
    let status = if judged.outcome() == Outcome::Installed { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Answer(judged)))
}

/// Id of an adapter in a path.
#[derive(Debug, Deserialize)]
struct OnAdapter {
    adapter_id: String,
}

async fn list(State(app): State<SharedApp>, At(path): At<OnAdapter>) -> Result<Answer<Packages>, Error> {
    let installed = kept::find(&app, &path.adapter_id).await?;
    let known = installed_packages::history(&mut app.db.single().await?, &path.adapter_id).await?;
    if known.is_empty() {
        return Err(Error::NotFound("adapter"));
    }
    let serving = app.runtime.adapter(&path.adapter_id);
    let serving = serving.as_ref().map(Adapter::manifest_sha256);
    let items = known.into_iter().map(|one| Package::of(one, serving, installed.as_ref()));
    Ok(Answer(Packages { items: items.collect() }))
}

async fn back(by: By, At(path): At<OnAdapter>) -> Result<Answer<Judged>, Error> {
    let app = by.app.clone();
    let work = async move { roll_back(&by, &path.adapter_id).await };
    Ok(Answer(to_its_end(&app, work).await?))
}
