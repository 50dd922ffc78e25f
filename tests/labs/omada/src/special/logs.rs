//! Events, alerts and the audit log: read by a time range, resolved and deleted.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{Failure, INVALID, Outcome};
use crate::page::page;
use crate::timeline::{ALERTS, EVENTS};

const AUDIT: &str = "insights.audit-log";

impl Omada {
    pub(crate) fn log_call(&mut self, call: &Call) -> Option<Outcome> {
        let is_export = call.last() == "export" || call.last() == "exports";
        match (call.item.id.as_str(), call.route.role) {
            (ALERTS | EVENTS | AUDIT, Role::List | Role::Read) if !is_export => Some(self.read_log(call)),
            ("insights.alert-resolve", _) => Some(Ok(self.change_log(call, ALERTS, true))),
            ("insights.alert-delete", _) => Some(Ok(self.change_log(call, ALERTS, false))),
            ("insights.event-delete", _) => Some(Ok(self.change_log(call, EVENTS, false))),
            _ => None,
        }
    }

    fn read_log(&self, call: &Call) -> Outcome {
        let time = |name: &str| call.query.get(name).map(|text| text.parse::<u64>().ok());
        let (start, end) = (time("filters.timeStart"), time("filters.timeEnd"));
        let needs_range = call.item.id != AUDIT && !call.route.is_web;
        if start == Some(None) || end == Some(None) || (needs_range && (start.is_none() || end.is_none())) {
            return Err(Failure::new(INVALID));
        }
        let (start, end) = (start.flatten().unwrap_or(0), end.flatten().unwrap_or(u64::MAX));
        let module = call.query.get("filters.module");
        let in_range = |row: &&Value| row["time"].as_u64().is_some_and(|time| (start..=end).contains(&time));
        // The controller's own log is that of all sites.
        let scopes: Vec<String> = if call.parameters.contains_key("siteId") {
            vec![call.scope().to_owned()]
        } else {
            let sites = self
                .store
                .rows("", "system.site")
                .iter()
                .filter_map(|site| Some(site["siteId"].as_str()?.to_owned()));
            sites.chain([String::new()]).collect()
        };
        let mut rows: Vec<&Value> = scopes
            .iter()
            .flat_map(|scope| self.store.rows(scope, &call.item.id))
            .filter(in_range)
            .filter(|row| module.is_none_or(|module| row["module"] == module.as_str()))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row["time"].as_u64()));
        let resolved = rows.iter().filter(|row| row["resolved"] == true).count();
        let of_device = rows.iter().filter(|row| row["module"] == "Device").count();
        let total = rows.len();
        let mut result = page(call, rows, Clone::clone);
        for name in ["alertLogStat", "eventLogStat"] {
            if result.get(name).is_some() {
                result[name] = json!({
                    "totalLogNum": total, "resolvedLogNum": resolved, "unResolvedLogNum": total - resolved,
                    "deviceLogNum": of_device, "systemLogNum": total - of_device,
                });
            }
        }
        Ok(result)
    }

    /// Resolves or deletes the lines that the body lists, or all of its range.
    fn change_log(&mut self, call: &Call, log: &str, resolves: bool) -> Value {
        let listed: Vec<&str> =
            call.body["logs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (start, end) =
            (call.body["startTime"].as_u64().unwrap_or(0), call.body["endTime"].as_u64().unwrap_or(u64::MAX));
        // "include" takes what is listed, "exclude" and "all" the rest of the range.
        let includes = call.text("selectType").eq_ignore_ascii_case("include");
        let chosen = |row: &Value| {
            let is_listed = listed.iter().any(|id| row["id"] == *id);
            let in_range = row["time"].as_u64().is_some_and(|time| (start..=end).contains(&time));
            if includes { is_listed } else { in_range && !is_listed }
        };
        let rows = self.store.rows_mut(call.scope(), log);
        if resolves {
            for row in rows.iter_mut().filter(|row| chosen(row)) {
                row["resolved"] = json!(true);
            }
        } else {
            rows.retain(|row| !chosen(row));
        }
        Value::Null
    }
}
