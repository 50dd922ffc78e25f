//! One request: the parameters that steer it, apart from the fields of the model.

use serde_json::{Map, Value, json};

use crate::facts::{Model, Route};
use crate::release::Release;
use crate::reply::Refusal;

const SORT_FLAGS: [&str; 6] =
    ["SORT_REGULAR", "SORT_NUMERIC", "SORT_STRING", "SORT_LOCALE_STRING", "SORT_NATURAL", "SORT_FLAG_CASE"];

/// A request of a known client to a known route.
#[expect(clippy::struct_excessive_bools, reason = "parameters of the API, each of its own")]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) model: &'static Model,
    pub(crate) route: &'static Route,
    pub(crate) path: String,
    /// The name of the user.
    pub(crate) user: String,
    /// User and address, as objects note who made them.
    pub(crate) client: String,
    pub(crate) data: Map<String, Value>,
    /// The objects of a PUT.
    pub(crate) items: Vec<Value>,
    pub(crate) applies: bool,
    pub(crate) is_async: bool,
    pub(crate) is_dry_run: bool,
    pub(crate) appends: bool,
    pub(crate) removes: bool,
    pub(crate) is_reversed: bool,
    pub(crate) placement: Option<Value>,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) sort_by: Option<Vec<String>>,
    pub(crate) is_descending: bool,
    pub(crate) sort_flags: Option<String>,
}

impl Call {
    /// Reads the control parameters out of the body or the query.
    pub(crate) fn steer(&mut self, release: Release, prefers_dry_run: bool) -> Result<(), Refusal> {
        self.is_async = self.switch("async", true)?;
        self.is_reversed = self.switch("reverse", false)?;
        self.read_sort(release)?;
        self.appends = self.switch("append", false)?;
        self.removes = self.switch("remove", false)?;
        self.limit = self.count("limit")?.unwrap_or(self.route.limit);
        self.offset = self.count("offset")?.unwrap_or(0);
        if release >= Release::V2_8 {
            self.is_dry_run = self.switch("dry_run", false)? || prefers_dry_run;
        }
        if self.is_dry_run && self.method == "GET" {
            let text = "The `dry_run` parameter is not supported on GET requests.";
            return Err(Refusal::invalid("ENDPOINT_DRY_RUN_NOT_SUPPORTED_ON_GET", text));
        }
        // Lists are written without an apply, whatever the request says.
        self.applies = !self.route.many && self.data.get("apply") == Some(&json!(true));
        self.placement = self.data.get("placement").filter(|value| !value.is_null()).cloned();
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        if self.data.get(name).is_none_or(Value::is_null) {
            return None;
        }
        self.data.shift_remove(name)
    }

    fn switch(&mut self, name: &str, usual: bool) -> Result<bool, Refusal> {
        match self.take(name) {
            None => Ok(usual),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => Err(wrong_type(name, "boolean")),
        }
    }

    fn count(&mut self, name: &str) -> Result<Option<usize>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().ok_or_else(|| wrong_type(name, "integer"))?;
        Ok(Some(usize::try_from(number).unwrap_or(0)))
    }

    fn read_sort(&mut self, release: Release) -> Result<(), Refusal> {
        if let Some(value) = self.take("sort_by") {
            let names = if let Value::Array(names) = value { names } else { vec![value] };
            let mut fields = Vec::new();
            for name in names {
                let name = name.as_str().ok_or_else(|| wrong_type("sort_by", "string"))?.to_owned();
                if !self.model.fields(release).any(|field| field.name == name) {
                    let text = "Field `sort_by` must be a field of the model.";
                    return Err(Refusal::invalid("ENDPOINT_SORT_BY_FIELD_NON_EXISTENT_FIELD", text));
                }
                fields.push(name);
            }
            self.sort_by = Some(fields);
        }
        if let Some(value) = self.take("sort_order") {
            self.is_descending = match value.as_str() {
                Some("SORT_ASC") => false,
                Some("SORT_DESC") => true,
                Some(_) => {
                    let text = "Field `sort_order` must be one of: ['SORT_ASC', 'SORT_DESC'].";
                    return Err(Refusal::invalid("ENDPOINT_SORT_ORDER_FIELD_UNKNOWN_SORT_ORDER", text));
                }
                None => return Err(wrong_type("sort_order", "string")),
            };
        }
        if let Some(value) = self.take("sort_flags") {
            let flags = value.as_str().ok_or_else(|| wrong_type("sort_flags", "string"))?;
            if !SORT_FLAGS.contains(&flags) {
                let text = format!("Field `sort_flags` must be one of: {SORT_FLAGS:?}");
                return Err(Refusal::invalid("ENDPOINT_SORT_FLAGS_FIELD_UNKNOWN_SORT_FLAGS", &text));
            }
            self.sort_flags = Some(flags.to_owned());
        }
        Ok(())
    }
}

fn wrong_type(name: &str, kind: &str) -> Refusal {
    let id = format!("ENDPOINT_{}_FIELD_INVALID_TYPE", name.to_uppercase());
    Refusal::invalid(&id, &format!("Field `{name}` must be of type `{kind}`."))
}
