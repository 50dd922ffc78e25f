//! What clients can ask of every list: a page, a text to search for, an order.

use heddle_core::page::PageRequest;
use heddle_store::{InOrder, Sorted};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::http::error::Error;

/// The query of a list; [`list_query`](crate::list_query) makes its type.
pub trait ListQuery: DeserializeOwned + JsonSchema + Send {
    type Row: Sorted + Send;

    /// Checks what every list has. It takes the text to search for out of the query.
    ///
    /// # Errors
    /// 422 where the page or the text is out of bounds.
    fn listing(&mut self) -> Result<Listing<Self::Row>, Error>;
}

/// What every list has, checked.
pub struct Listing<T> {
    pub page: PageRequest,
    /// `None` when there is nothing to search for.
    pub search: Option<String>,
    pub order: InOrder<T>,
}

/// Makes the query of a list: what every list has, around the filters of this one. The comment above it documents `search`; a
/// list without one cannot be searched. `sort` can have words of its own.
///
/// ```text
/// list_query! {
///     /// Part of the name or the slug.
///     struct ListQuery of Organization, sort "What the list is sorted by." {
///         tier: Option<Tier>,
///     }
/// }
/// ```
#[macro_export]
macro_rules! list_query {
    ($(#[doc = $search:literal])+ $vis:vis struct $name:ident of $row:ty $(, at most $most:tt)? $(, sort $sort:literal)? {
        $($(#[$meta:meta])* $field:ident: $type:ty,)*
    }) => {
        $crate::list_query!(@struct $vis $name $row, [$($most)?] [$($sort)?] {
            $($(#[$meta])* $field: $type,)*
            $(#[doc = $search])+
            search: Option<String>,
        });
        $crate::list_query!(@impl $name $row, [$($most)?], |query| query.search.take());
    };
    ($vis:vis struct $name:ident of $row:ty { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        $crate::list_query!(@struct $vis $name $row, [] [] { $($(#[$meta])* $field: $type,)* });
        $crate::list_query!(@impl $name $row, [], |_query| None);
    };
    (@struct $vis:vis $name:ident $row:ty, $most:tt [] $fields:tt) => {
        $crate::list_query!(
            @struct $vis $name $row, $most
            ["What the list is sorted by, `-` before the word for the other direction."] $fields
        );
    };
    (@struct $vis:vis $name:ident $row:ty, [] $sort:tt $fields:tt) => {
        $crate::list_query!(
            @struct $vis $name $row,
            [$crate::http::extract::PER_PAGE_MAX, "From 1 to 200; 50 when absent."] $sort $fields
        );
    };
    (@struct $vis:vis $name:ident $row:ty, [100] $sort:tt $fields:tt) => {
        $crate::list_query!(@struct $vis $name $row, [100, "From 1 to 100; 50 when absent."] $sort $fields);
    };
    (@struct $vis:vis $name:ident $row:ty, [$most:expr, $about:literal] [$sort:literal] {
        $($(#[$meta:meta])* $field:ident: $type:ty,)*
    }) => {
        #[derive(Debug, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $vis struct $name {
            #[schemars(range(min = 1))]
            page: Option<u32>,
            #[doc = $about]
            #[schemars(range(min = 1, max = $most))]
            per_page: Option<u32>,
            $($(#[$meta])* $field: $type,)*
            #[doc = $sort]
            sort: Option<::heddle_store::Sort<$row>>,
        }
    };
    (@impl $name:ident $row:ty, [], $search:expr) => {
        $crate::list_query!(@impl $name $row, [$crate::http::extract::PER_PAGE_MAX], $search);
    };
    (@impl $name:ident $row:ty, [$($most:tt)+], $search:expr) => {
        impl $crate::http::list_query::ListQuery for $name {
            type Row = $row;

            fn listing(
                &mut self,
            ) -> Result<$crate::http::list_query::Listing<$row>, $crate::http::error::Error> {
                let search: fn(&mut Self) -> Option<String> = $search;
                let page = $crate::http::extract::page_request(self.page, self.per_page, $($most)+)?;
                let search = $crate::checks::search(search(self))?;
                let order = ::heddle_store::InOrder::by(page, self.sort);
                Ok($crate::http::list_query::Listing { page, search, order })
            }
        }
    };
}

/// Makes the query of a list without an end, such as events: a page or a cursor, and an order by time, around the filters of
/// this one.
#[macro_export]
macro_rules! walk_query {
    ($vis:vis struct $name:ident of $row:ty { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $vis struct $name {
            #[schemars(range(min = 1))]
            page: Option<u32>,
            /// From 1 to 200; 50 when absent.
            #[schemars(range(min = 1, max = $crate::http::extract::PER_PAGE_MAX))]
            per_page: Option<u32>,
            /// The `next_cursor` of the rows before; not together with `page`.
            cursor: Option<String>,
            $($(#[$meta])* $field: $type,)*
            /// Order by time, the newest first by default. A cursor keeps the order that it came with.
            sort: Option<::heddle_store::Sort<$row>>,
        }

        impl $name {
            /// Checks what every such list has.
            ///
            /// # Errors
            /// 422 where it is out of bounds, or does not fit the cursor.
            fn walk(&self) -> Result<::heddle_core::page::WalkRequest, $crate::http::error::Error> {
                let place = (self.page, self.per_page, self.cursor.as_deref());
                $crate::http::extract::walk_request(place, self.sort, $crate::http::extract::PER_PAGE_MAX)
            }
        }
    };
}
