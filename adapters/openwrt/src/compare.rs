//! Where the device stands, seen from a plan.

use heddle_sdk::{Fault, Host, Standing};
use serde_json::Value;

use crate::plan::{digests, read_configs};
use crate::token::Token;
use crate::{power, uci};

/// Compares the files, or what a restart leaves behind, with the plan.
pub(crate) fn compare(host: &dyn Host, token: &[u8]) -> Result<Standing, Fault> {
    let token = match Token::read(token)? {
        Token::Config(token) => token,
        Token::Power(token) => return power::compare(host, &token),
    };
    let configs = read_configs(host, token.before.keys().map(String::as_str))?;
    let found = digests(&configs);
    // A change that changes nothing is before and after; after is what was asked for.
    if found == token.after {
        return Ok(Standing::After);
    }
    if found == token.before {
        return Ok(Standing::Before);
    }
    let differing: Vec<Value> = configs
        .values()
        .filter_map(|config| {
            uci::differences(config, token.after.get(&config.name).map_or("", String::as_str))
        })
        .collect();
    Ok(Standing::Other(Value::Array(differing).to_string()))
}
