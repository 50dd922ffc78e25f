//! `POST /graphql`. It answers 200 whatever happens; the simulation knows no field of the schema, and says so as the
//! vendor says it of an unknown field.

use heddle_lab::Answer;
use serde_json::{Value, json};

use crate::call::Call;

pub(crate) fn answer(call: &Call) -> Answer {
    let query = call.data.get("query").and_then(Value::as_str).unwrap_or_default();
    let inner = query.split_once('{').map_or("", |(_, inner)| inner).trim_start();
    let field: String = inner.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let body = match field.as_str() {
        "" => json!({ "errors": [{ "message": "Syntax Error: Unexpected <EOF>" }] }),
        "__typename" => json!({ "data": { "__typename": "Query" } }),
        field => {
            let message = format!("Cannot query field \"{field}\" on type \"Query\".");
            json!({ "errors": [{ "message": message }] })
        }
    };
    Answer::json(200, &body)
}
