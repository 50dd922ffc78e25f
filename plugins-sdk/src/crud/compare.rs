//! Where the device stands, seen from what a plan touches.

use serde_json::Value;

use super::part::Found;
use super::token::Token;
use super::{Vendor, state};
use crate::{Comparison, Fault, Host, Standing};

/// Compares the device with a plan.
pub fn compare(vendor: &dyn Vendor, host: &dyn Host, token: &[u8]) -> Result<Comparison, Fault> {
    let token = Token::read(token)?;
    if token.is_unseen {
        return Ok(Standing::Unseen.into());
    }
    let now = state::read(vendor, host, &token)?;
    let found: Vec<Found> = (0..token.parts.len()).map(|at| now.stands(&token, at)).collect();
    let of_item = |item: usize| {
        let own = token.parts.iter().zip(&found).filter(move |(part, _)| part.items.contains(&item));
        together(own.map(|(_, found)| found))
    };
    let standing = match together(found.iter()) {
        Standing::After => match now.needs(vendor, host, &token)? {
            needs if needs.is_empty() => Standing::After,
            needs => Standing::Stored(needs),
        },
        other => other,
    };
    let items = (0..token.items).map(of_item).collect();
    Ok(Comparison { standing, items, foreign: now.foreign(&token) })
}

/// A change that changes nothing is before and after; after is what was asked for.
fn together<'a>(found: impl Iterator<Item = &'a Found>) -> Standing {
    let (mut is_before, mut is_after, mut differing, mut adjusted) = (true, true, Vec::new(), Vec::new());
    for one in found {
        is_before &= matches!(one, Found::Both | Found::Before);
        is_after &= matches!(one, Found::Both | Found::After | Found::Adjusted(_));
        match one {
            Found::Other(what) | Found::Between(what) => differing.push(what.clone()),
            Found::Before => differing.push(Value::from("one object is as before")),
            Found::Adjusted(what) => adjusted.push(what.clone()),
            Found::Both | Found::After => {}
        }
    }
    match (is_before, is_after) {
        (_, true) if !adjusted.is_empty() => Standing::Adjusted(Value::Array(adjusted).to_string()),
        (_, true) => Standing::After,
        (true, false) => Standing::Before,
        (false, false) => {
            differing.extend(adjusted);
            Standing::Other(Value::Array(differing).to_string())
        }
    }
}
