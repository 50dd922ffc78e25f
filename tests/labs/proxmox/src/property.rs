//! Property strings: several settings in one value, as in `virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=20`.

use crate::check;
use crate::facts::Field;

/// The settings of a value in their order. The first may stand without a name; it is given back as `None`.
pub(crate) fn parts(text: &str) -> Vec<(Option<&str>, &str)> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').map_or((None, part), |(name, value)| (Some(name), value))).collect()
}

/// The value of one setting.
pub(crate) fn find<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    parts(text).into_iter().find(|(found, _)| *found == Some(name)).map(|(_, value)| value)
}

/// The first value, whether it has a name or not.
pub(crate) fn first(text: &str) -> &str {
    parts(text).first().map_or("", |(_, value)| value)
}

/// The text with one setting replaced or added.
pub(crate) fn with(text: &str, name: &str, value: &str) -> String {
    let kept = parts(text).into_iter().filter(|(found, _)| *found != Some(name));
    let mut out: Vec<String> = kept
        .map(|(found, value)| found.map_or_else(|| value.to_owned(), |found| format!("{found}={value}")))
        .collect();
    out.push(format!("{name}={value}"));
    out.join(",")
}

/// Verifies a value against the settings that its schema knows.
pub(crate) fn check(fields: &[Field], text: &str) -> Result<(), String> {
    let (mut seen, mut errors) = (Vec::new(), Vec::new());
    for (name, value) in parts(text) {
        let field = match name {
            Some(name) => fields.iter().find(|field| field.name == name),
            None => fields.iter().find(|field| field.is_default_key()),
        };
        let Some(field) = field else {
            let name = name.unwrap_or(value);
            let known =
                "property is not defined in schema and the schema does not allow additional properties";
            errors.push(format!("{name}: {known}"));
            continue;
        };
        // An alias with a model for a name, as in virtio=MAC, names the default key too.
        let target = field.alias.as_deref().unwrap_or(&field.name);
        if let Some(default) = fields.iter().find(|default| default.is_default_key())
            && default.words.contains(&field.name)
        {
            seen.push(default.name.clone());
        }
        seen.push(target.to_owned());
        let checked = fields.iter().find(|field| field.name == target).unwrap_or(field);
        if let Err(error) = check::scalar(checked, value) {
            errors.push(format!("{}: {error}", checked.name));
        }
    }
    for field in fields.iter().filter(|field| field.is_required() && !seen.contains(&field.name)) {
        errors.push(format!("{}: property is missing and it is not optional", field.name));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(format!("invalid format - format error\n{}\n", errors.join("\n")))
}
