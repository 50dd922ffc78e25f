//! Rules of a manifest that the host applies to requests, and the small languages in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| heddle_fuzz::rules::check(input));
