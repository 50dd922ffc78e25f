//! Archives that are sent to be installed.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| heddle_fuzz::archive::check(input));
