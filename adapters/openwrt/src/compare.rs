//! Where the device stands, seen from what a plan touches.

use std::collections::BTreeMap;

use heddle_sdk::{Comparison, Fault, Host, Standing};
use serde_json::Value;

use crate::foreign;
use crate::identity::Finder;
use crate::token::{ConfigToken, Token};
use crate::touch::{Configs, Found};
use crate::{power, read};

/// Compares the files, or what a restart leaves behind, with the plan.
pub(crate) fn compare(host: &dyn Host, token: &[u8]) -> Result<Comparison, Fault> {
    let token = match Token::read(token)? {
        Token::Config(token) => token,
        Token::Power(token) => return power::compare(host, &token).map(Comparison::from),
    };
    let names: Vec<&str> = token.files.keys().map(String::as_str).collect();
    let files = read::configs(host, &names)?;
    let found = stand(&token, &files);
    let items = (0..token.items)
        .map(|item| together(found.iter().filter(|(items, _)| items.contains(&item)).map(|(_, found)| found)))
        .collect();
    let standing = together(found.iter().map(|(_, found)| found));
    Ok(Comparison {
        standing,
        items,
        foreign: foreign::changes(&files, (&token.parts, &token.orders), &token.files),
    })
}

/// How each part of the plan stands, with the changes that it is of.
pub(crate) fn stand<'t>(token: &'t ConfigToken, files: &Configs) -> Vec<(&'t [usize], Found)> {
    let mut finders: BTreeMap<(&str, &str), Finder<'_>> = BTreeMap::new();
    let kinds = token.parts.iter().map(|part| (part.config.as_str(), part.kind.as_str()));
    let kinds = kinds.chain(token.orders.iter().map(|order| (order.config.as_str(), order.kind.as_str())));
    for (config, kind) in kinds {
        if let Some(file) = files.get(config) {
            finders.entry((config, kind)).or_insert_with(|| Finder::new(file, kind));
        }
    }
    let parts = token.parts.iter().filter_map(|part| {
        let finder = finders.get(&(part.config.as_str(), part.kind.as_str()))?;
        Some((part.items.as_slice(), part.stands(part.section(finder))))
    });
    let orders = token.orders.iter().filter_map(|order| {
        let finder = finders.get(&(order.config.as_str(), order.kind.as_str()))?;
        Some((order.items.as_slice(), order.stands(finder, files.get(&order.config)?)))
    });
    parts.chain(orders).collect()
}

/// A change that changes nothing is before and after; after is what was asked for.
fn together<'a>(found: impl Iterator<Item = &'a Found>) -> Standing {
    let (mut is_before, mut is_after, mut differing) = (true, true, Vec::new());
    let mut stray = Vec::new();
    for one in found {
        is_before &= matches!(one, Found::Both | Found::Before);
        is_after &= matches!(one, Found::Both | Found::After);
        match one {
            Found::Other(values) => differing.extend(values.iter().cloned()),
            Found::Before => stray.push(Value::from("before")),
            Found::After => stray.push(Value::from("after")),
            Found::Both => {}
        }
    }
    if is_after {
        return Standing::After;
    }
    if is_before {
        return Standing::Before;
    }
    if differing.is_empty() {
        differing = stray;
    }
    Standing::Other(Value::Array(differing).to_string())
}
