//! The example plugins in Rust, each with its tests. Their folders are workspaces of their own, as those of authors are: here they
//! are linted and tested like the rest.

#[path = "../examples/grafana-annotations/src/lib.rs"]
mod grafana_annotations;
#[path = "../examples/quiet-hours/src/lib.rs"]
mod quiet_hours;
