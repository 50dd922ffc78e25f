//! Static names: the value of a row stands in the field of its type.

use crate::address::Prefix;
use crate::device::Router;
use crate::refusal::Refusal;
use crate::store::Row;

/// The fields that hold a value, by type.
const VALUES: [(&str, &[&str]); 9] = [
    ("A", &["address"]),
    ("AAAA", &["address"]),
    ("CNAME", &["cname"]),
    ("FWD", &["forward-to"]),
    ("MX", &["mx-exchange", "mx-preference"]),
    ("NS", &["ns"]),
    ("NXDOMAIN", &[]),
    ("SRV", &["srv-target", "srv-port", "srv-priority", "srv-weight"]),
    ("TXT", &["text"]),
];

pub(crate) fn complete(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    if row.text("type").is_empty() {
        let is_v6 = row.text("address").contains(':');
        row.values.insert("type".to_owned(), if is_v6 { "AAAA" } else { "A" }.into());
    }
    let kind = row.text("type").to_owned();
    let (_, own) = VALUES.iter().find(|(name, _)| *name == kind).ok_or_else(|| Refusal::no_match("type"))?;
    if row.text("name").is_empty() == row.text("regexp").is_empty() {
        return Err(Refusal::failure("either name or regexp must be set"));
    }
    // A value of another type is dropped.
    for field in VALUES.iter().flat_map(|(_, fields)| *fields).filter(|field| !own.contains(*field)) {
        row.values.remove(*field);
    }
    if let Some(field) = own.first().filter(|field| row.text(field).is_empty()) {
        return Err(Refusal::missing(field));
    }
    let is_v4 = Prefix::parse(row.text("address")).map(|prefix| prefix.address.is_ipv4());
    if (kind == "A" && is_v4 != Some(true)) || (kind == "AAAA" && is_v4 != Some(false)) {
        return Err(Refusal::invalid("address"));
    }
    let name = row.text("name").to_lowercase();
    row.values.insert("name".to_owned(), name.into());
    if row.text("name").is_empty() {
        row.values.remove("name");
    }
    let key = |row: &Row| {
        let fields = ["name", "regexp", "type"].iter().chain(*own).map(|field| row.text(field).to_owned());
        fields.collect::<Vec<_>>()
    };
    let mut others =
        router.store.rows("ip/dns/static").iter().filter(|other| other.id != row.id && !other.is_disabled());
    if !row.is_disabled() && others.any(|other| key(other) == key(row)) {
        return Err(Refusal::failure("entry already exists"));
    }
    Ok(())
}
