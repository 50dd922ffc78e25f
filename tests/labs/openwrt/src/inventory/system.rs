//! `system`, `rpc-sys`, `log`, `rc` and `service`.

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::device::{Device, Restart};
use crate::status::{Reply, Status};

/// Services with their start and stop priorities.
const SERVICES: [(&str, u8, u8); 9] = [
    ("boot", 10, 90),
    ("dnsmasq", 19, 90),
    ("dropbear", 19, 50),
    ("firewall", 19, 90),
    ("log", 12, 89),
    ("network", 20, 90),
    ("odhcpd", 35, 85),
    ("rpcd", 12, 10),
    ("uhttpd", 50, 10),
];

const PACKAGES: [(&str, &str); 10] = [
    ("base-files", "1640"),
    ("dnsmasq", "2.90-r4"),
    ("dropbear", "2024.86-r1"),
    ("firewall4", "2024.12.18-r1"),
    ("luci", "25.045.55566"),
    ("netifd", "2024.12.17-r1"),
    ("odhcpd-ipv6only", "2024.05.08-r2"),
    ("rpcd", "2024.12.10-r1"),
    ("uhttpd-mod-ubus", "2023.06.25-r1"),
    ("wpad-basic-mbedtls", "2024.09.15-r1"),
];

impl Device {
    /// One call of `system` or `rpc-sys`.
    pub(crate) fn system(&mut self, object: &str, method: &str, args: Args<'_>) -> Reply {
        match (object, method) {
            ("system", "board") => Ok(Some(self.board())),
            ("system", "info") => Ok(Some(self.load())),
            ("system", "validate_firmware_image") => {
                let is_valid = self.is_image(args.required("path")?);
                Ok(Some(json!({
                    "tests": { "fwtool_signature": is_valid, "fwtool_device_match": is_valid },
                    "valid": is_valid, "forceable": is_valid, "allow_backup": is_valid,
                })))
            }
            ("rpc-sys", "packagelist") => {
                let packages: Map<String, Value> =
                    PACKAGES.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
                Ok(Some(json!({ "packages": packages })))
            }
            ("rpc-sys", "password_set") => self.set_password(args),
            ("system" | "rpc-sys", "reboot") => self.answer_then(Restart::Reboot),
            ("rpc-sys", "factory") => self.answer_then(Restart::FactoryReset),
            ("rpc-sys", "upgrade_start") if !self.is_image("/tmp/firmware.bin") => Err(Status::NotFound),
            // Absent or mistyped, `keep` is false: the configuration is wiped.
            ("rpc-sys", "upgrade_start") => {
                self.answer_then(Restart::Upgrade { keeps_config: args.flag("keep") == Some(true) })
            }
            _ => Err(Status::MethodNotFound),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "every method answers a reply")]
    fn answer_then(&mut self, restart: Restart) -> Reply {
        self.schedule_restart(restart);
        Ok(None)
    }

    fn set_password(&mut self, args: Args<'_>) -> Reply {
        let (name, password) = (args.required("user")?, args.required("password")?);
        let user = self.users.iter_mut().find(|user| user.name == name).ok_or(Status::NotFound)?;
        user.password = Some(password.to_owned());
        Ok(None)
    }

    pub(crate) fn hostname(&self) -> &str {
        self.config("system")
            .section("@system[0]")
            .and_then(|system| system.text("hostname"))
            .unwrap_or("OpenWrt")
    }

    fn board(&self) -> Value {
        json!({
            "kernel": "6.6.73",
            "hostname": self.hostname(),
            "system": "ARMv8 Processor rev 4",
            "model": "GL.iNet GL-MT6000",
            "board_name": "glinet,gl-mt6000",
            "rootfs_type": "squashfs",
            "release": {
                "distribution": "OpenWrt",
                "version": self.release,
                "revision": "r28427-6df0e3d02a",
                "target": "mediatek/filogic",
                "description": format!("OpenWrt {} r28427-6df0e3d02a", self.release),
                "builddate": "1738624177",
            },
        })
    }

    /// Seconds that the clock on the wall is ahead of UTC, of a zone such as `CET-1`: its sign is that of POSIX.
    fn zone_secs(&self) -> i64 {
        let system = self.config("system").section("@system[0]");
        let zone = system.and_then(|system| system.text("timezone")).unwrap_or_default();
        let hours = zone.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let end = hours.find(|c: char| !c.is_ascii_digit() && !"+-".contains(c)).unwrap_or(hours.len());
        -hours[..end].parse::<i64>().unwrap_or_default() * 3_600
    }

    fn load(&self) -> Value {
        let busy = self.age().as_secs() % 7 * 700;
        json!({
            "localtime": self.epoch_secs().saturating_add_signed(self.zone_secs()),
            "uptime": self.uptime().as_secs(),
            "load": [9_830 + busy, 6_550, 4_590],
            "memory": {
                "total": 1_029_898_240_u64, "free": 742_313_984_u64 - busy * 4096, "shared": 819_200, "buffered": 16_384,
                "available": 768_311_296_u64, "cached": 61_407_232,
            },
            "root": { "total": 7_400_448, "free": 7_022_592, "used": 377_856, "avail": 7_022_592 },
            "tmp": { "total": 502_880, "free": 501_020, "used": 1_860, "avail": 501_020 },
            "swap": { "total": 0, "free": 0 },
        })
    }
}

/// The last `lines` of the log, oldest first; all when not named.
pub(super) fn log(device: &Device, lines: Option<i64>) -> Value {
    let keep =
        lines.and_then(|lines| usize::try_from(lines).ok()).filter(|lines| *lines > 0).unwrap_or(usize::MAX);
    let skip = device.log.len().saturating_sub(keep);
    let entries: Vec<Value> = device
        .log
        .iter()
        .enumerate()
        .skip(skip)
        .map(|(id, line)| {
            let since = line.at.duration_since(device.started_at).as_millis();
            let time = u128::from(device.settings.epoch_secs) * 1000 + since;
            let priority = if line.level == "notice" { 29 } else { 30 };
            json!({ "msg": line.text, "id": id, "priority": priority, "source": 1,
                    "time": u64::try_from(time).unwrap_or(u64::MAX) })
        })
        .collect();
    json!({ "log": entries })
}

pub(super) fn init_scripts(name: Option<&str>) -> Value {
    let wanted = SERVICES.iter().filter(|(service, ..)| name.is_none_or(|name| name == *service));
    let print =
        |start: u8, stop: u8| json!({ "start": start, "stop": stop, "enabled": true, "running": start > 10 });
    Value::Object(
        wanted.map(|(service, start, stop)| ((*service).to_owned(), print(*start, *stop))).collect(),
    )
}

pub(super) fn services(name: Option<&str>) -> Value {
    let mut out = Map::new();
    for (index, (service, start, _)) in SERVICES.iter().enumerate() {
        if *start > 10 && name.is_none_or(|name| name == *service) {
            let instance = json!({ "running": true, "pid": 1200 + index * 37, "command": [format!("/usr/sbin/{service}")] });
            out.insert((*service).to_owned(), json!({ "instances": { "instance1": instance } }));
        }
    }
    Value::Object(out)
}
