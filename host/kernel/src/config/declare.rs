//! How a part of the product declares its settings: one line each gives the field, its type, its default and its documentation.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use heddle_core::secret::Secret;
use ipnet::IpNet;

use super::{ConfigError, Environment};

/// One line of the settings table.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    pub about: &'static str,
}

/// Text to a setting's type, with words for what is accepted. A fault quotes the text, so a type that holds a secret
/// accepts every text and is checked later.
pub trait Parse: Sized {
    /// In words.
    const ACCEPTED: &'static str;
    /// The error says what is accepted.
    fn parse(text: &str) -> Result<Self, String>;
}

macro_rules! parse_with_from_str {
    ($($type:ty: $accepted:literal,)+) => {$(
        impl Parse for $type {
            const ACCEPTED: &'static str = $accepted;
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| Self::ACCEPTED.to_owned())
            }
        }
    )+};
}

parse_with_from_str! {
    SocketAddr: "an address and port such as 127.0.0.1:8080",
    u32: "a whole number from 0 to 4294967295",
    u64: "a whole number from 0 to 18446744073709551615",
    PathBuf: "a path",
    String: "a text",
}

impl Parse for Secret {
    const ACCEPTED: &'static str = "a text";
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Secret::new(text))
    }
}

impl Parse for bool {
    const ACCEPTED: &'static str = "true or false";
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(Self::ACCEPTED.to_owned()),
        }
    }
}

impl Parse for Environment {
    const ACCEPTED: &'static str = "development, staging or production";
    fn parse(text: &str) -> Result<Self, String> {
        Environment::from_str(text).map_err(|_| Self::ACCEPTED.to_owned())
    }
}

impl<T: Parse> Parse for Option<T> {
    const ACCEPTED: &'static str = T::ACCEPTED;
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }
}

/// A comma-separated list; empty means none.
impl<T: Item> Parse for Vec<T> {
    const ACCEPTED: &'static str = T::ACCEPTED_ITEMS;
    fn parse(text: &str) -> Result<Self, String> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(|item| T::item(item).ok_or_else(|| T::ACCEPTED_ITEMS.to_owned())).collect()
    }
}

/// What a list of settings can hold.
pub trait Item: Sized {
    /// In words.
    const ACCEPTED_ITEMS: &'static str;
    /// `None` where the text is none.
    fn item(text: &str) -> Option<Self>;
}

/// A plain address is a network of one.
impl Item for IpNet {
    const ACCEPTED_ITEMS: &'static str =
        "networks such as 10.1.0.0/16 or addresses such as 10.1.2.3, separated by commas";
    fn item(text: &str) -> Option<Self> {
        text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
    }
}

impl Item for String {
    const ACCEPTED_ITEMS: &'static str = "texts, separated by commas";
    fn item(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// Finds the text of a setting by its name.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings of one part of the product; [`settings`](crate::settings) makes the type.
pub trait Settings: Send + Sync + Sized + 'static {
    /// One line for each.
    const TABLE: &'static [Setting];

    /// Reads all of them. One that cannot be read is added to the faults, and gets its default.
    fn read(lookup: Lookup<'_>, faults: &mut Vec<ConfigError>) -> Self;

    /// Adds a fault for each that does not fit the others or the environment.
    fn check(&self, _: Environment, _: &mut Vec<ConfigError>) {}
}

/// The settings that a feature declares.
#[derive(Clone, Copy)]
pub struct SettingsOf {
    pub(super) table: &'static [Setting],
    read: fn(Lookup<'_>, Environment, &mut Vec<ConfigError>) -> (TypeId, Arc<dyn Any + Send + Sync>),
}

impl SettingsOf {
    /// Declares the settings of this type.
    pub const fn the<S: Settings>() -> Self {
        Self {
            table: S::TABLE,
            read: |lookup, environment, faults| {
                let before = faults.len();
                let settings = S::read(lookup, faults);
                // What is checked together are values that were given, not the defaults in place of wrong ones.
                if faults.len() == before {
                    settings.check(environment, faults);
                }
                (TypeId::of::<S>(), Arc::new(settings))
            },
        }
    }
}

/// The settings of all features, each by its type.
#[derive(Clone, Default)]
pub(super) struct OfFeatures(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl std::fmt::Debug for OfFeatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OfFeatures").field(&self.0.len()).finish()
    }
}

impl OfFeatures {
    pub(super) fn read(
        declared: impl Iterator<Item = SettingsOf>,
        lookup: Lookup<'_>,
        environment: Environment,
        faults: &mut Vec<ConfigError>,
    ) -> Self {
        Self(declared.map(|settings| (settings.read)(lookup, environment, faults)).collect())
    }

    pub(super) fn get<S: Settings>(&self) -> Option<&S> {
        self.0.get(&TypeId::of::<S>())?.downcast_ref()
    }
}

/// Reads one setting; [`settings`](crate::settings) calls it.
pub fn read_one<T: Parse>(
    lookup: Lookup<'_>,
    (name, default): (&'static str, &'static str),
    faults: &mut Vec<ConfigError>,
) -> T {
    let text = lookup(name).unwrap_or_else(|| default.to_owned());
    T::parse(text.trim()).unwrap_or_else(|accepted| {
        faults.push(ConfigError::Value { name, value: text, accepted });
        T::parse(default).expect("a test reads every default")
    })
}

/// Adds a fault where a number is out of its range; [`settings`](crate::settings) calls it.
pub fn check_range(
    name: &'static str,
    value: impl Into<u64>,
    (min, max): (u64, u64),
    faults: &mut Vec<ConfigError>,
) {
    let value = value.into();
    if !(min..=max).contains(&value) {
        let accepted = format!("a whole number from {min} to {max}");
        faults.push(ConfigError::Value { name, value: value.to_string(), accepted });
    }
}

/// Makes the type of some settings. A line has the field, its type, the name, the default and, for a number, its range; the
/// comment above it is its documentation. A function can check them together.
///
/// ```text
/// settings! {
///     /// Settings of the collector.
///     pub struct CollectorSettings checked by check {
///         /// Seconds between two collections.
///         interval_secs: u32 = "COLLECTOR_INTERVAL_SECS", "60", from 1 to 3600;
///     }
/// }
/// ```
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* $vis:vis struct $of:ident $(checked by $check:path)? {$(
        $(#[doc = $about:literal])+
        $field:ident: $type:ty = $name:literal, $default:literal $(, from $min:literal to $max:literal)?;
    )+}) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $of {
            $($(#[doc = $about])+ pub $field: $type,)+
        }

        impl $crate::config::Settings for $of {
            const TABLE: &'static [$crate::config::Setting] = &[
                $($crate::config::Setting { name: $name, default: $default, about: concat!($($about),+) },)+
            ];

            fn read(
                lookup: $crate::config::Lookup<'_>,
                faults: &mut Vec<$crate::config::ConfigError>,
            ) -> Self {
                Self {$(
                    $field: {
                        let value: $type = $crate::config::read_one(lookup, ($name, $default), faults);
                        $($crate::config::check_range($name, value, ($min, $max), faults);)?
                        value
                    },
                )+}
            }

            $(fn check(
                &self,
                environment: $crate::config::Environment,
                faults: &mut Vec<$crate::config::ConfigError>,
            ) {
                $check(self, environment, faults);
            })?
        }
    };
}
