//! Packages of the system that tests need: installed where that is possible, named where it is not.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::process::{self, Stop, say};

/// Installs packages as root on Debian and its kin; elsewhere the error is `missing`.
pub(crate) fn install(packages: &[&str], missing: &str, stop: &Stop) -> anyhow::Result<()> {
    ensure!(is_root() && Path::new("/etc/debian_version").exists(), missing.to_owned());
    say(&format!("installing {}", packages.join(" ")));
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300", "-qq", "-y"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    process::run("apt-get update", apt().arg("update"), stop)?;
    let mut command = apt();
    command.args(["--no-install-recommends", "install"]).args(packages);
    process::run("apt-get install", &mut command, stop)
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
