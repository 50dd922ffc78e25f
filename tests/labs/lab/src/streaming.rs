//! An answer that does not end: what the controller sends in it, and when it ends.

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::time::sleep;

use crate::Controller;
use crate::respond::Unanswered;
use crate::server::POLL;
use crate::shared::Shared;
use crate::socket::{Wish, wish};

/// An open stream of a controller, which learns of its end.
struct Open<C: Controller> {
    shared: Shared<C>,
    number: u64,
}

impl<C: Controller> Drop for Open<C> {
    fn drop(&mut self) {
        let mut locked = self.shared.lock();
        let (controller, _) = locked.parts();
        controller.socket_closed(self.number);
    }
}

/// The body that sends the texts of this stream until either side ends it.
pub(crate) fn body<C: Controller>(shared: Shared<C>, number: u64) -> Body {
    let open = Open { shared, number };
    Body::from_stream(stream::unfold(Some(open), |open| async {
        let open = open?;
        loop {
            match wish(&open.shared, open.number) {
                Wish::Send(texts) if texts.is_empty() => sleep(POLL).await,
                Wish::Send(texts) => return Some((Ok(Bytes::from(texts.concat())), Some(open))),
                Wish::Close => return None,
                // The connection goes down with the error.
                Wish::Drop => return Some((Err(Unanswered), None)),
            }
        }
    }))
}
