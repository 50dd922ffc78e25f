//! The paginated envelopes, and the cursor through a list that grows without end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::Timestamp;

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

/// One page of a list that grows without end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "{T}CursorPage")]
pub struct CursorPage<T> {
    pub items: Vec<T>,
    /// Rows in all, counted no further than the cap.
    pub total: i64,
    /// Whether there are more rows than `total` says.
    pub total_is_capped: bool,
    /// Null when a cursor said where to go on.
    pub page: Option<u32>,
    pub per_page: u32,
    /// Pages of what was counted; null when a cursor said where to go on.
    pub pages: Option<i64>,
    /// Brings the rows behind these; null at the end.
    pub next_cursor: Option<String>,
}

impl<T> CursorPage<T> {
    /// The same part of the list, with each row as `shown` makes it.
    pub fn map<V>(self, shown: impl FnMut(T) -> V) -> CursorPage<V> {
        CursorPage {
            items: self.items.into_iter().map(shown).collect(),
            total: self.total,
            total_is_capped: self.total_is_capped,
            page: self.page,
            per_page: self.per_page,
            pages: self.pages,
            next_cursor: self.next_cursor,
        }
    }
}

/// Where a list that grows without end is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Counts from 1.
    Page(u32),
    /// Behind the row that the cursor names.
    Behind(Cursor),
}

/// The requested part of a list that grows without end. Built only with values inside the bounds.
#[derive(Debug, Clone, Copy)]
pub struct WalkRequest {
    pub per_page: u32,
    pub place: Place,
    /// From the oldest row to the newest.
    pub is_ascending: bool,
}

/// What a list gave for a [`WalkRequest`].
#[derive(Debug, Clone)]
pub struct Walked<T> {
    pub items: Vec<T>,
    pub total: i64,
    pub total_is_capped: bool,
    /// Whether there are rows behind these.
    pub has_more: bool,
}

impl WalkRequest {
    /// The answer; `cursor` names a row by what the list is ordered by.
    pub fn of<T>(self, walked: Walked<T>, cursor: impl Fn(&T) -> Cursor) -> CursorPage<T> {
        let per_page = i64::from(self.per_page).max(1);
        let page = match self.place {
            Place::Page(page) => Some(page),
            Place::Behind(_) => None,
        };
        let last = walked.items.last().filter(|_| walked.has_more);
        CursorPage {
            next_cursor: last.map(|row| cursor(row).encode(self.is_ascending)),
            items: walked.items,
            total: walked.total,
            total_is_capped: walked.total_is_capped,
            page,
            per_page: self.per_page,
            pages: page.map(|_| (walked.total + per_page - 1) / per_page),
        }
    }
}

/// A row's place in a list that is ordered by time, number and id.
///
/// Clients see it as a text without meaning, which a damage of it does not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub occurred_at: Timestamp,
    pub seq: i64,
    pub id: Uuid,
}

/// Bytes of time, number and id.
const ROW_BYTES: usize = 32;
/// Bytes of the digest that shows a damage.
const CHECK_BYTES: usize = 4;

impl Cursor {
    /// The text for clients, with the direction of the list that it is a place in.
    pub fn encode(&self, is_ascending: bool) -> String {
        let mut bytes = Vec::with_capacity(ROW_BYTES + 1 + CHECK_BYTES);
        bytes.extend(self.occurred_at.timestamp_micros().to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.id.as_bytes());
        bytes.push(u8::from(is_ascending));
        let check = Sha256::digest(&bytes);
        bytes.extend(&check[..CHECK_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The place, and whether its list is ascending; `None` when it is not a text that [`Cursor::encode`] made.
    pub fn decode(text: &str) -> Option<(Self, bool)> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (row, check) = bytes.split_at_checked(ROW_BYTES + 1)?;
        if check.len() != CHECK_BYTES || Sha256::digest(row)[..CHECK_BYTES] != *check {
            return None;
        }
        let number = |at: usize| row[at..at + 8].try_into().ok().map(i64::from_be_bytes);
        let cursor = Self {
            occurred_at: DateTime::from_timestamp_micros(number(0)?)?,
            seq: number(8)?,
            id: Uuid::from_slice(&row[16..ROW_BYTES]).ok()?,
        };
        Some((cursor, row[ROW_BYTES] == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    fn cursor(seq: i64) -> Cursor {
        let clock = Clock::default();
        Cursor { occurred_at: clock.now(), seq, id: clock.new_id() }
    }

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        for seq in [i64::MIN, -1, 0, 1, i64::MAX] {
            let cursor = cursor(seq);
            for is_ascending in [false, true] {
                assert_eq!(Cursor::decode(&cursor.encode(is_ascending)), Some((cursor, is_ascending)));
            }
        }
    }

    #[test]
    fn a_damaged_cursor_is_none() {
        let good = cursor(7).encode(false);
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] = if bad[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(Cursor::decode(std::str::from_utf8(&bad).unwrap()), None, "byte {at}");
        }
        for bad in ["", "!", "AAAA", &good[1..], &format!("{good}AAAA")] {
            assert_eq!(Cursor::decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let request = WalkRequest { per_page: 2, place: Place::Page(1), is_ascending: false };
        let walked = |has_more| Walked { items: vec![1, 2], total: 2, total_is_capped: false, has_more };
        assert!(request.of(walked(false), |_| cursor(1)).next_cursor.is_none());
        let page = request.of(walked(true), |_| cursor(1));
        assert!(page.next_cursor.is_some());
        assert_eq!((page.page, page.pages), (Some(1), Some(1)));
        let behind = WalkRequest { per_page: 2, place: Place::Behind(cursor(1)), is_ascending: false };
        let page = behind.of(walked(false), |_| cursor(1));
        assert_eq!((page.page, page.pages), (None, None));
    }
}
