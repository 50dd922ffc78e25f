//! Routes, pages and the API document, built anew whenever a package comes, changes or goes.
//!
//! They are replaced as a whole, and a request keeps the routes that it began with: no request is lost.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::future::RouteFuture;

use crate::app::SharedApp;
use crate::{http, task};

/// The service that the listener hands requests to. All clones are replaced together.
#[derive(Clone)]
pub(crate) struct Surface(Arc<ArcSwap<Router>>);

impl Surface {
    /// Builds the routes of what is installed now.
    pub(crate) fn new(app: &SharedApp) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(http::router(app))))
    }

    /// Builds the routes anew. Where they cannot be built, routes and features stay as they are.
    fn rebuild(&self, app: &SharedApp) {
        let began = Instant::now();
        let built = catch_unwind(AssertUnwindSafe(|| {
            let router = http::router(app);
            for feature in app.features().iter() {
                feature.installed(app);
            }
            router
        }));
        match built {
            Ok(router) => {
                self.0.store(Arc::new(router));
                tracing::info!(
                    duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    "routes are those of what is installed now"
                );
            }
            Err(panic) => tracing::error!(
                panic = task::text_of(&*panic),
                "routes of what is installed cannot be built; those from before stay"
            ),
        }
    }
}

impl tower::Service<Request> for Surface {
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let mut router = Router::clone(&self.0.load());
        router.call(http::without_trailing_slash(request))
    }
}

/// Replaces the surface after each change of what is installed, until the process stops.
pub(crate) async fn follow(app: SharedApp, surface: Surface) {
    let (stop, mut installed) = (app.tasks.stopping(), app.runtime.installed());
    loop {
        let change = *installed.borrow_and_update();
        if app.shown.is_before(change) {
            let (built, of) = (surface.clone(), app.clone());
            task::block(move || built.rebuild(&of)).await;
            app.shown.reaches(change);
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = installed.changed() => if changed.is_err() { return },
        }
    }
}
