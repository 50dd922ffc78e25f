//! What the files of a catalogue may hold at most. A file beyond a bound is refused whole.

/// Bytes of a root.
pub const ROOT_BYTES_MAX: u64 = 64 * 1024;
/// Roots that one update goes through. The next update goes on from there.
pub const ROOT_STEPS_MAX: u32 = 64;
/// Bytes of a timestamp.
pub const TIMESTAMP_BYTES_MAX: u64 = 256 * 1024;
/// Days from signing a timestamp to its expiry.
pub const TIMESTAMP_DAYS_MAX: i64 = 31;
/// Bytes of a catalogue.
pub const CATALOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Highest version of a file: numbers up to here mean the same to every reader of JSON.
pub const VERSION_MAX: u64 = (1 << 53) - 1;

/// Levels of arrays and objects in a file.
pub const DEPTH_MAX: usize = 24;
/// Keys of a root.
pub const ROOT_KEYS_MAX: usize = 24;
/// Keys of a role. Twice as many signatures fit into a file: those of two roots, or of two versions of a file.
pub const ROLE_KEYS_MAX: usize = 8;

/// Revoked packages, components, keys and plugins.
pub const REVOCATIONS_MAX: usize = 1_024;
/// Publishers of a catalogue.
pub const PUBLISHERS_MAX: usize = 4_096;
/// Keys of a publisher.
pub const PUBLISHER_KEYS_MAX: usize = 16;
/// Patterns of ids of a publisher.
pub const PUBLISHER_IDS_MAX: usize = 64;
/// Plugins of a catalogue.
pub const PLUGINS_MAX: usize = 10_000;
/// Versions of a plugin.
pub const PLUGIN_VERSIONS_MAX: usize = 200;
/// Categories of a plugin.
pub const CATEGORIES_MAX: usize = 8;
/// Keys that signed a version.
pub const SIGNERS_MAX: usize = 16;

/// Bytes of a name, a license and a category.
pub const NAME_BYTES_MAX: usize = 80;
/// Bytes of a summary and of the reason of a revocation.
pub const SUMMARY_BYTES_MAX: usize = 300;
/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a URL.
pub const URL_BYTES_MAX: usize = 1_024;
/// Bytes of the capabilities of a version, and of its permissions.
pub const CAPABILITIES_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a range of versions.
pub const RANGE_BYTES_MAX: usize = 200;
/// Bytes of a version of a plugin.
pub const PLUGIN_VERSION_BYTES_MAX: usize = 100;
