//! Permissions that files need, and their settings.

use heddle_kernel::config::{ConfigError, Environment};

heddle_core::permissions! { pub PERMISSIONS {
    FILE_READ = "file:read", Operator, "See and download files";
    FILE_WRITE = "file:write", Operator, "Upload and remove files, and have devices give them";
} }

heddle_kernel::settings! {
    /// How much the files of an organization may take, and how long they are kept.
    pub struct FilesSettings checked by check {
        /// Most bytes of one file, uploaded or fetched from a device.
        file_bytes_max: u64 = "FILE_BYTES_MAX", "268435456", from 1 to 8_589_934_592;
        /// Most bytes of all files of an organization together.
        files_bytes_max: u64 = "FILES_BYTES_MAX", "2147483648", from 1 to 1_099_511_627_776;
        /// Days until a file is removed, unless a pending change needs it.
        file_ttl_days: u32 = "FILE_TTL_DAYS", "7", from 1 to 365;
    }
}

fn check(settings: &FilesSettings, _: Environment, faults: &mut Vec<ConfigError>) {
    if settings.file_bytes_max > settings.files_bytes_max {
        faults.push(ConfigError::Value {
            name: "FILE_BYTES_MAX",
            value: settings.file_bytes_max.to_string(),
            accepted: "at most FILES_BYTES_MAX, which an organization has for all of its files".to_owned(),
        });
    }
}
