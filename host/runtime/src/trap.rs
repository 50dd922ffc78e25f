//! How a call ended when it did not answer.

use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::api::TrapClass;

/// The party that caused an error of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Component(TrapClass),
    /// The pool is full, which admission should have prevented.
    Overload,
    Host,
}

/// Marks an error of a host function, which is not the component's fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HostFault(pub(crate) String);

/// Ends a call of a plugin that was refused too often.
#[derive(Debug, thiserror::Error)]
#[error("it was refused something {0} times")]
pub(crate) struct RefusedTooOften(pub(crate) u32);

/// Ends a call whose component asked to be ended.
#[derive(Debug, thiserror::Error)]
#[error("it ended itself with the status {0}")]
pub(crate) struct Exited(pub(crate) u8);

/// Ends a call that asked a system interface for more than any call gets.
#[derive(Debug, thiserror::Error)]
#[error("it asked for {asked} {what}; {most} are the most")]
pub(crate) struct AskedTooMuch {
    pub(crate) what: &'static str,
    pub(crate) asked: u64,
    pub(crate) most: usize,
}

/// Classifies an error of a call; `denied_growths` counts refused memory.
pub(crate) fn classify(error: &wasmtime::Error, denied_growths: u32) -> Ending {
    if error.is::<PoolConcurrencyLimitError>() {
        return Ending::Overload;
    }
    if error.is::<HostFault>() {
        return Ending::Host;
    }
    if error.is::<RefusedTooOften>() || error.is::<AskedTooMuch>() {
        return Ending::Component(TrapClass::Bug);
    }
    if let Some(exited) = error.downcast_ref::<Exited>() {
        // Runtimes that get no memory say so and end themselves.
        let is_starved = denied_growths > 0 && exited.0 != 0;
        return Ending::Component(if is_starved { TrapClass::Resource } else { TrapClass::Exit });
    }
    let class = match error.downcast_ref::<Trap>() {
        Some(trap) => class_of(*trap),
        None if is_too_large(error) => TrapClass::TooLarge,
        // Whatever is no trap is a broken border: bad pointers, handles, discriminants.
        None => TrapClass::Abi,
    };
    // A guest that gets no memory usually ends in `unreachable`, like any panic.
    let starved = denied_growths > 0 && !matches!(class, TrapClass::Cpu | TrapClass::TooLarge);
    Ending::Component(if starved { TrapClass::Resource } else { class })
}

/// Whether a result or an argument had more bytes than `set_hostcall_fuel` allows. The type of the error is private.
fn is_too_large(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls")
}

fn class_of(trap: Trap) -> TrapClass {
    match trap {
        Trap::UnreachableCodeReached => TrapClass::Panic,
        Trap::Interrupt | Trap::OutOfFuel => TrapClass::Cpu,
        Trap::StackOverflow | Trap::AllocationTooLarge => TrapClass::Resource,
        Trap::MemoryOutOfBounds
        | Trap::TableOutOfBounds
        | Trap::IndirectCallToNull
        | Trap::BadSignature
        | Trap::IntegerOverflow
        | Trap::IntegerDivisionByZero
        | Trap::BadConversionToInteger
        | Trap::HeapMisaligned
        | Trap::NullReference
        | Trap::ArrayOutOfBounds
        | Trap::CastFailure => TrapClass::Bug,
        _ => TrapClass::Abi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: impl Into<wasmtime::Error>, denied: u32, expected: Ending) {
        assert_eq!(classify(&error.into(), denied), expected);
    }

    #[test]
    fn each_end_has_its_class() {
        let component = Ending::Component;
        check(Trap::UnreachableCodeReached, 0, component(TrapClass::Panic));
        check(Trap::UnreachableCodeReached, 1, component(TrapClass::Resource));
        check(Trap::Interrupt, 1, component(TrapClass::Cpu));
        check(Trap::StackOverflow, 0, component(TrapClass::Resource));
        check(Trap::IntegerDivisionByZero, 0, component(TrapClass::Bug));
        check(Trap::CannotEnterComponent, 0, component(TrapClass::Abi));
        check(wasmtime::Error::msg("string pointer out of bounds"), 0, component(TrapClass::Abi));
        check(HostFault("x".to_owned()), 0, Ending::Host);
        check(RefusedTooOften(64), 1, component(TrapClass::Bug));
        check(Exited(0), 1, component(TrapClass::Exit));
        check(Exited(2), 0, component(TrapClass::Exit));
        check(Exited(2), 1, component(TrapClass::Resource));
        check(AskedTooMuch { what: "bytes", asked: 2, most: 1 }, 1, component(TrapClass::Bug));
    }
}
