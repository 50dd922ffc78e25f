//! The two layers of failure: ubus statuses inside a result, JSON-RPC errors around it.

use serde_json::Value;

/// A ubus status other than 0, as `result: [status]` carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    InvalidArgument = 2,
    MethodNotFound = 3,
    NotFound = 4,
    NoData = 5,
    PermissionDenied = 6,
    NotSupported = 8,
    /// What rpcd answers for a file that libuci cannot parse.
    Unknown = 9,
}

impl Status {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// What a ubus method gives: nothing, one object, or a status.
pub(crate) type Reply = Result<Option<Value>, Status>;

/// A failure before any ubus object was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RpcError {
    Parse,
    MethodNotFound,
    InvalidParams,
    ObjectNotFound,
    AccessDenied,
}

impl RpcError {
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::ObjectNotFound => -32000,
            Self::AccessDenied => -32002,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Parse => "Parse error",
            Self::MethodNotFound => "Method not found",
            Self::InvalidParams => "Invalid parameters",
            Self::ObjectNotFound => "Object not found",
            Self::AccessDenied => "Access denied",
        }
    }
}
