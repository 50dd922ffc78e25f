//! Writes the inputs that the targets begin with: `seeds FOLDER`.
//!
//! It is a target, too, which ends before its first input: instrumented code runs only with the library of the targets.
#![no_main]

libfuzzer_sys::fuzz_target!(init: heddle_fuzz::seeds::write_and_exit(), |_input: &[u8]| ());
