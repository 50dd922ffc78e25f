//! The paginated envelope.

use schemars::JsonSchema;
use serde::Serialize;

/// One page of a list. `page` counts from 1.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    pub items: Vec<T>,
    pub total: i64,
    pub page: u32,
    pub per_page: u32,
    pub pages: i64,
}

/// Which page is asked for. Built only with values inside the bounds.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    pub page: u32,
    pub per_page: u32,
}

impl PageRequest {
    pub fn limit(self) -> i64 {
        i64::from(self.per_page)
    }

    pub fn of<T>(self, items: Vec<T>, total: i64) -> Page<T> {
        let pages = (total + self.limit() - 1) / self.limit().max(1);
        Page { items, total, page: self.page, per_page: self.per_page, pages }
    }
}
