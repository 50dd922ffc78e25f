//! What goes wrong on request, beside what the transport does to connections.

use std::collections::BTreeSet;

/// What becomes of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskFault {
    /// It never ends by itself.
    Hang,
    /// It ends with this exit status.
    Fail(String),
}

/// The faults that are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// The configuration file system is read-only.
    pub(crate) has_no_quorum: bool,
    /// Storages without free space.
    pub(crate) full_storages: BTreeSet<String>,
    /// What becomes of the task that the call under way starts.
    pub(crate) next_task: Option<TaskFault>,
}
