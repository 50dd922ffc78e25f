//! Door access control, which this service does not have: every route says so, as the interface requires.

use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::Feature;
use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Routes, doc};

/// Both spellings of the module's address.
const ADDRESSES: [&str; 2] = ["/access_control", "/access_control/access"];

const GLOSSARY: Glossary = Glossary {
    groups: &[(
        "access_control",
        "Access control",
        "Doors. Not available on this server: every operation answers 501.",
    )],
    ..Glossary::EMPTY
};

/// Door access control, refused.
pub(crate) struct AccessControl;

impl Feature for AccessControl {
    fn name(&self) -> &'static str {
        "access_control"
    }

    fn glossary(&self) -> &'static Glossary {
        &GLOSSARY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let access =
            Access::Authenticated(Unscoped("every operation answers 501: no door is operated from here"));
        let never = |summary| doc(summary).empty(501);
        ADDRESSES.iter().fold(Routes::default(), |routes, address| {
            let door = |verb: &str| format!("{address}/doors/{{door_id}}/{verb}");
            routes
                .get(
                    address,
                    access,
                    refuse,
                    never("Always 501: access control is disabled and cannot be enabled"),
                )
                .post(&door("lock"), access, refuse, never("Always 501: doors cannot be locked from here"))
                .post(
                    &door("unlock"),
                    access,
                    refuse,
                    never("Always 501: doors cannot be unlocked from here"),
                )
        })
    }
}

async fn refuse() -> Error {
    Error::NotAvailable(
        "access control is disabled and cannot be enabled; doors are locked and unlocked at their own system",
    )
}
