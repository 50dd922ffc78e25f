//! The id of a request, by which an answer and the log are compared.

/// The id of a request, as clients and logs see it.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);
