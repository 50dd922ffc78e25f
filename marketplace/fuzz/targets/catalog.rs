//! The files of a catalogue, over several updates.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| heddle_fuzz::catalog::check(input));
