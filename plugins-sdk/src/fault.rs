//! Faults, made in one line. The host acts on `effect`: `none` is a promise.

use crate::{Effect, Fault, FaultInfo, FieldError};

fn text(message: impl Into<String>) -> FaultInfo {
    FaultInfo {
        message: message.into(),
        code: None,
        upstream_status: None,
        retry_after_ms: None,
        effect: Effect::None,
        fields: Vec::new(),
    }
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident => $variant:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Fault {
            Fault::$variant(text(message))
        }
    )*};
}

faults! {
    /// No connection, or it broke.
    connection => Connection,
    /// The device refused the credential.
    authentication => Authentication,
    /// The credential is good, but may not do this.
    denied => Denied,
    timeout => Timeout,
    not_found => NotFound,
    rate_limit => RateLimit,
    /// Another write is under way at the device.
    busy => Busy,
    /// The device is starting or upgrading.
    not_ready => NotReady,
    /// The payload cannot be carried out.
    invalid => Invalid,
    /// The device is not as it was reviewed; nothing was sent.
    state_moved => StateMoved,
    conflict => Conflict,
    /// This device or version cannot do it.
    unsupported => Unsupported,
    generic => Generic,
}

/// What every fault carries, whatever its kind.
pub trait FaultExt: Sized {
    /// Returns what the fault says in addition to its kind.
    fn info(&self) -> &FaultInfo;
    /// Returns the same to be changed. The methods below change single fields of it.
    fn info_mut(&mut self) -> &mut FaultInfo;

    /// A stable code: "state-moved", "vendor:-1005".
    #[must_use]
    fn with_code(mut self, code: impl Into<String>) -> Self {
        self.info_mut().code = Some(code.into());
        self
    }
    /// Says whether the failed call may have changed something at the device. A new fault says
    /// [`Effect::None`], which the host takes as a promise.
    #[must_use]
    fn with_effect(mut self, effect: Effect) -> Self {
        self.info_mut().effect = effect;
        self
    }
    /// Adds the HTTP status with which the device answered. It is for diagnosis: the host decides nothing by
    /// it.
    #[must_use]
    fn with_upstream_status(mut self, status: u16) -> Self {
        self.info_mut().upstream_status = Some(status);
        self
    }
    /// Says after how many milliseconds another try can succeed: for `rate_limit`, `busy` and `not_ready`.
    /// Clients get it as `Retry-After`, rounded up to seconds.
    #[must_use]
    fn with_retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.info_mut().retry_after_ms = Some(retry_after_ms);
        self
    }
    /// Adds what is wrong at a JSON pointer of the payload.
    #[must_use]
    fn with_field(mut self, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        self.info_mut().fields.push(FieldError { pointer: pointer.into(), message: message.into() });
        self
    }
}

macro_rules! info {
    ($fault:expr) => {
        match $fault {
            Fault::Connection(info)
            | Fault::Authentication(info)
            | Fault::Denied(info)
            | Fault::Timeout(info)
            | Fault::NotFound(info)
            | Fault::RateLimit(info)
            | Fault::Busy(info)
            | Fault::NotReady(info)
            | Fault::Invalid(info)
            | Fault::StateMoved(info)
            | Fault::Conflict(info)
            | Fault::Unsupported(info)
            | Fault::Generic(info) => info,
        }
    };
}

impl FaultExt for Fault {
    fn info(&self) -> &FaultInfo {
        info!(self)
    }
    fn info_mut(&mut self) -> &mut FaultInfo {
        info!(self)
    }
}
