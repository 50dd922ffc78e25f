//! Manifests and descriptions of packages.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| heddle_fuzz::manifest::check(input));
