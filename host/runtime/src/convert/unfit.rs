//! Why an answer of a component is not taken.

/// An answer that does not keep to the interface.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    /// The component broke its border.
    #[error("{0}")]
    Form(String),
    /// It is larger than the host takes: how large it is follows from the device.
    #[error("{0}")]
    Size(String),
    /// What names something is longer than the host takes. It costs the entry of a page that has it, and not the others.
    #[error("{0}")]
    Name(String),
}
