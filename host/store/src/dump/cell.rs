//! One value of any column, and its form in JSON, which loses nothing.

use chrono::SecondsFormat;
use heddle_core::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// What a column holds. There are no other types, see the migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Uuid,
    Text,
    Number,
    Flag,
    Real,
    Json,
    Bytes,
    Time,
}

/// A value, or none, of a column's kind.
#[derive(Debug, Clone)]
pub enum Cell {
    Uuid(Option<Uuid>),
    Text(Option<String>),
    Number(Option<i64>),
    Flag(Option<bool>),
    Real(Option<f64>),
    Json(Option<Box<RawValue>>),
    Bytes(Option<Vec<u8>>),
    Time(Option<Timestamp>),
}

/// A value that is none of the column's kind. It is not quoted: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a value is no {0:?}")]
pub struct NotA(pub Kind);

impl Kind {
    pub(super) fn of_declared(declared: &str) -> Option<Self> {
        Some(match declared {
            "UUID" => Kind::Uuid,
            "TEXT" => Kind::Text,
            "BIGINT" => Kind::Number,
            "BOOLEAN" => Kind::Flag,
            "DOUBLE PRECISION" => Kind::Real,
            "JSONB" => Kind::Json,
            "BYTEA" => Kind::Bytes,
            "TIMESTAMPTZ" => Kind::Time,
            _ => return None,
        })
    }
}

impl Cell {
    /// Returns whether the column is empty in this row. The text `null` in a JSON column is a value.
    pub fn is_null(&self) -> bool {
        match self {
            Cell::Uuid(value) => value.is_none(),
            Cell::Text(value) => value.is_none(),
            Cell::Number(value) => value.is_none(),
            Cell::Flag(value) => value.is_none(),
            Cell::Real(value) => value.is_none(),
            Cell::Json(value) => value.is_none(),
            Cell::Bytes(value) => value.is_none(),
            Cell::Time(value) => value.is_none(),
        }
    }

    /// JSON columns keep their text, and doubles their digits, in a string.
    pub fn to_json(&self) -> Value {
        match self {
            Cell::Uuid(value) => value.map(|id| id.to_string()).into(),
            Cell::Text(value) => value.clone().into(),
            Cell::Number(value) => (*value).into(),
            Cell::Flag(value) => (*value).into(),
            Cell::Real(value) => value.map(|real| format!("{real:?}")).into(),
            Cell::Json(value) => value.as_ref().map(|raw| raw.get().to_owned()).into(),
            Cell::Bytes(value) => value.as_ref().map(hex::encode).into(),
            Cell::Time(value) => value.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true)).into(),
        }
    }

    /// Reads the form that [`Cell::to_json`] writes.
    /// `null` gives an empty cell, also for a column that cannot be empty: the caller checks that.
    ///
    /// # Errors
    /// [`NotA`] when the value has another form than cells of this kind.
    pub fn parse(kind: Kind, value: Value) -> Result<Self, NotA> {
        let text = match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Number(number) if kind == Kind::Number => {
                return number.as_i64().map(|n| Cell::Number(Some(n))).ok_or(NotA(kind));
            }
            Value::Bool(flag) if kind == Kind::Flag => return Ok(Cell::Flag(Some(flag))),
            _ => return Err(NotA(kind)),
        };
        let given = text.is_some();
        let cell = match kind {
            Kind::Uuid => Cell::Uuid(text.and_then(|text| text.parse().ok())),
            Kind::Text => Cell::Text(text),
            Kind::Number => Cell::Number(None),
            Kind::Flag => Cell::Flag(None),
            Kind::Real => Cell::Real(text.and_then(|text| text.parse().ok())),
            Kind::Json => Cell::Json(text.and_then(|text| RawValue::from_string(text).ok())),
            Kind::Bytes => Cell::Bytes(text.and_then(|text| hex::decode(text).ok())),
            Kind::Time => Cell::Time(text.and_then(|text| text.parse().ok())),
        };
        if given && cell.is_null() { Err(NotA(kind)) } else { Ok(cell) }
    }
}

/// Binds a cell to a query of either database.
macro_rules! bind {
    ($query:expr, $cell:expr) => {
        match $cell {
            $crate::dump::Cell::Uuid(value) => $query.bind(*value),
            $crate::dump::Cell::Text(value) => $query.bind(value.as_deref()),
            $crate::dump::Cell::Number(value) => $query.bind(*value),
            $crate::dump::Cell::Flag(value) => $query.bind(*value),
            $crate::dump::Cell::Real(value) => $query.bind(*value),
            $crate::dump::Cell::Json(value) => $query.bind(value.as_ref().map(sqlx::types::Json)),
            $crate::dump::Cell::Bytes(value) => $query.bind(value.as_deref()),
            $crate::dump::Cell::Time(value) => $query.bind(*value),
        }
    };
}

/// The cells of a row of either database.
macro_rules! row {
    ($row:expr, $columns:expr) => {
        $columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                Ok(match column.kind {
                    $crate::dump::Kind::Uuid => $crate::dump::Cell::Uuid($row.try_get(at)?),
                    $crate::dump::Kind::Text => $crate::dump::Cell::Text($row.try_get(at)?),
                    $crate::dump::Kind::Number => $crate::dump::Cell::Number($row.try_get(at)?),
                    $crate::dump::Kind::Flag => $crate::dump::Cell::Flag($row.try_get(at)?),
                    $crate::dump::Kind::Real => $crate::dump::Cell::Real($row.try_get(at)?),
                    $crate::dump::Kind::Json => $crate::dump::Cell::Json(
                        $row.try_get::<Option<sqlx::types::Json<_>>, _>(at)?.map(|json| json.0),
                    ),
                    $crate::dump::Kind::Bytes => $crate::dump::Cell::Bytes($row.try_get(at)?),
                    $crate::dump::Kind::Time => $crate::dump::Cell::Time($row.try_get(at)?),
                })
            })
            .collect::<$crate::error::Result<Vec<$crate::dump::Cell>>>()
    };
}
pub(super) use bind;
pub(super) use row;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn round(kind: Kind, value: Value) {
        let cell = Cell::parse(kind, value.clone()).unwrap();
        assert_eq!(cell.to_json(), value);
        assert_eq!(cell.is_null(), value.is_null());
    }

    #[test]
    fn every_value_comes_back_as_it_was() {
        for kind in [
            Kind::Uuid,
            Kind::Text,
            Kind::Number,
            Kind::Flag,
            Kind::Real,
            Kind::Json,
            Kind::Bytes,
            Kind::Time,
        ] {
            round(kind, Value::Null);
            assert_eq!(Cell::parse(kind, json!([])).unwrap_err(), NotA(kind));
        }
        round(Kind::Uuid, json!("0192f0c1-2b6a-7c3d-8e4f-5a6b7c8d9e0f"));
        round(Kind::Text, json!("ö\u{0}\n"));
        round(Kind::Number, json!(i64::MIN));
        round(Kind::Number, json!(i64::MAX));
        round(Kind::Flag, json!(false));
        for real in [0.1, -0.0, f64::NAN, f64::INFINITY, 1e300, 5e-324] {
            round(Kind::Real, json!(format!("{real:?}")));
        }
        round(Kind::Json, json!(r#"{"n":12345678901234567890123,"b":1.50,"b":null}"#));
        round(Kind::Bytes, json!("00ff"));
        round(Kind::Bytes, json!(""));
        round(Kind::Time, json!("2026-02-28T23:59:59.123456Z"));
    }

    #[test]
    fn what_is_of_another_kind_is_refused() {
        for (kind, value) in [
            (Kind::Uuid, json!("x")),
            (Kind::Text, json!(1)),
            (Kind::Number, json!(1.5)),
            (Kind::Number, json!("1")),
            (Kind::Flag, json!(1)),
            (Kind::Real, json!("one")),
            (Kind::Json, json!("{")),
            (Kind::Bytes, json!("0")),
            (Kind::Time, json!("yesterday")),
        ] {
            assert_eq!(Cell::parse(kind, value).unwrap_err(), NotA(kind));
        }
    }
}
