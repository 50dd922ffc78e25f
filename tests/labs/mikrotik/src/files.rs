//! Files on the box: texts, exports that can be imported, and backups that hold everything.

use crate::call::{Answered, Call, Done, Output};
use crate::device::{Down, Router};
use crate::export;
use crate::refusal::Refusal;
use crate::script;
use crate::store::{Origin, Record, Row, Store, Values};

const MENU: &str = "file";
/// Bytes of a text that a row shows, and that can be written.
const SHOWN_MAX: usize = 60_000;
/// Bytes of one chunk.
const CHUNK_MAX: usize = 32_768;

/// What a file holds.
#[derive(Clone)]
pub(crate) enum Content {
    Text(String),
    Backup { store: Store, password: String },
}

impl Content {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Backup { store, .. } => {
                4_096 + 256 * store.menus().map(|menu| store.rows(menu).len()).sum::<usize>()
            }
        }
    }
}

/// Names are paths; two files have not the same one.
pub(crate) fn complete(router: &Router, row: &Row) -> Result<(), Refusal> {
    if row.text("name").is_empty() {
        return Err(Refusal::missing("name"));
    }
    let mut others = router.store.rows(MENU).iter().filter(|other| other.id != row.id);
    if others.any(|other| other.text("name") == row.text("name")) {
        return Err(Refusal::failure("file already exists"));
    }
    if row.text("contents").len() > SHOWN_MAX {
        return Err(Refusal::failure("contents too long"));
    }
    Ok(())
}

/// Moves written contents out of the row.
pub(crate) fn written(router: &mut Router, call: &Call, id: u64) {
    let Some(mut row) = router.store.find(MENU, id).map(|row| Row::clone(row)) else { return };
    let contents = row.text("contents").to_owned();
    row.values.remove("contents");
    let now = crate::device::time_text(router.unix);
    row.values.insert("last-modified".to_owned(), now.into());
    if call.has("contents") || !router.contents.contains_key(&id) {
        router.contents.insert(id, Content::Text(contents));
    }
    router.store.put(MENU, row);
}

pub(crate) fn forget(router: &mut Router, id: u64) {
    router.contents.remove(&id);
}

/// Writes a file, over an older one of the same name.
pub(crate) fn put(router: &mut Router, name: &str, content: Content) {
    let now = crate::device::time_text(router.unix);
    let known = router.store.having(MENU, "name", name).map(|row| row.id);
    let id = known.unwrap_or_else(|| {
        router.store.add(MENU, Origin::Own, Values::from([("name".to_owned(), name.into())]))
    });
    router.store.set(MENU, id, "last-modified", now);
    router.contents.insert(id, content);
}

fn find<'r>(router: &'r Router, name: &str) -> Option<&'r Content> {
    router.store.having(MENU, "name", name).and_then(|row| router.contents.get(&row.id))
}

fn has_end(name: &str, end: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|own| own == end)
}

/// The text of a file.
pub(crate) fn text<'r>(router: &'r Router, name: &str) -> Option<&'r str> {
    match find(router, name)? {
        Content::Text(text) => Some(text),
        Content::Backup { .. } => None,
    }
}

pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    let content = router.contents.get(&row.id);
    let name = row.text("name");
    let kind = match content {
        Some(Content::Backup { .. }) => "backup",
        _ if row.text("type") == "directory" => "directory",
        _ if has_end(name, "rsc") => "script",
        _ => "file",
    };
    out.insert("type".to_owned(), kind.to_owned());
    if let Some(content) = content.filter(|_| kind != "directory") {
        out.insert("size".to_owned(), content.size().to_string());
    }
    if let Some(Content::Text(text)) =
        content.filter(|content| kind != "directory" && content.size() <= SHOWN_MAX)
    {
        out.insert("contents".to_owned(), text.clone());
    }
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("file", "read") => read(router, call),
        ("", "export") => {
            let shows = call.has("show-sensitive") && call.who.may("sensitive");
            let text = export::text(router, shows);
            match call.args.get("file") {
                Some(name) => {
                    let name = if has_end(name, "rsc") { name.clone() } else { format!("{name}.rsc") };
                    put(router, &name, Content::Text(text));
                    Ok(Done { output: Output::Nothing, secs: Some(1) })
                }
                None => Ok(Done::value(text)),
            }
        }
        ("", "import") => import(router, call),
        ("system/backup", "save") => Ok(save(router, call)),
        ("system/backup", "load") => load(router, call),
        ("system", "sup-output") => {
            put(router, "supout.rif", Content::Text("simulated support file\n".to_owned()));
            Ok(Done { output: Output::Nothing, secs: Some(20) })
        }
        _ => return None,
    })
}

/// One chunk of a text; an empty one behind its end.
fn read(router: &Router, call: &Call) -> Answered {
    let name = call.need("file")?;
    let content = find(router, name).ok_or_else(|| Refusal::no_match("file"))?;
    let Content::Text(text) = content else { return Err(Refusal::failure("can not read binary file")) };
    let number = |name: &str, usual: usize| match call.args.get(name) {
        Some(text) => text.parse::<usize>().map_err(|_| Refusal::invalid(name)),
        None => Ok(usual),
    };
    let (size, offset) = (number("chunk-size", CHUNK_MAX)?, number("offset", 0)?);
    if size > CHUNK_MAX || size == 0 {
        return Err(Refusal::unclear(format!("value of chunk-size out of range (1..{CHUNK_MAX})")));
    }
    let bytes = text.as_bytes();
    let chunk = &bytes[offset.min(bytes.len())..(offset + size).min(bytes.len())];
    let data = String::from_utf8_lossy(chunk).into_owned();
    Ok(Done::rows(vec![[("data".to_owned(), data)].into()]))
}

fn import(router: &mut Router, call: &Call) -> Answered {
    let name = call.need("file-name")?;
    let source = text(router, name).ok_or_else(|| Refusal::no_match("file-name"))?.to_owned();
    if call.has("dry-run") {
        return Ok(Done::nothing());
    }
    let (_, secs, why) = script::at_once(router, &source, call.who.clone());
    match why {
        Some(why) => Err(Refusal::Unclear(format!("Script Error: {}", why.text()))),
        None => Ok(Done { output: Output::Nothing, secs: Some(secs + 1) }),
    }
}

fn save(router: &mut Router, call: &Call) -> Done {
    let identity = router.store.setting("system/identity", "name").to_owned();
    let usual = format!("{identity}-{}", crate::device::date_time(router.unix).format("%Y%m%d-%H%M"));
    let name = call.args.get("name").cloned().unwrap_or(usual);
    let name = if has_end(&name, "backup") { name } else { format!("{name}.backup") };
    let password = call.arg("password").to_owned();
    let store = router.store.clone();
    put(router, &name, Content::Backup { store, password });
    router.note("system,info", "configuration backup saved");
    Done { output: Output::Nothing, secs: Some(1) }
}

/// Restarts with the configuration of the file. Files stay.
fn load(router: &mut Router, call: &Call) -> Answered {
    let name = call.need("name")?;
    let content = find(router, name).ok_or_else(|| Refusal::no_match("name"))?;
    let Content::Backup { store, password } = content else {
        return Err(Refusal::failure("not a backup file"));
    };
    if password != call.arg("password") {
        return Err(Refusal::failure("wrong password"));
    }
    let (store, files) = (store.clone(), router.store.clone());
    router.store.replace(&store);
    router.store.take_over(&[MENU], &files);
    router.note("system,info", &format!("configuration restored by {}", call.who.name));
    router.go_down(Down::Reboot);
    Ok(Done::nothing())
}
