//! One macro for closed sets of words: the same spelling in Rust, SQL and JSON.

/// Declares an enum whose variants are stable words.
///
/// Gives `as_str`, `ALL`, `FromStr` (the error names what is accepted),
/// `Display`, serde and JSON Schema.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::UnknownWord { text: text.to_owned(), accepted: &[$($word,)+] }),
                }
            }
        }
    };
}

/// Words that the store also binds and reads as text, behind the `sqlx` feature.
macro_rules! stored_words {
    ($(#[$meta:meta])* pub enum $name:ident { $($body:tt)+ }) => {
        $crate::words! { $(#[$meta])* pub enum $name { $($body)+ } }

        #[cfg(feature = "sqlx")]
        const _: () = {
            impl<DB: sqlx::Database> sqlx::Type<DB> for $name
            where
                String: sqlx::Type<DB>,
            {
                fn type_info() -> DB::TypeInfo {
                    <String as sqlx::Type<DB>>::type_info()
                }
                fn compatible(ty: &DB::TypeInfo) -> bool {
                    <String as sqlx::Type<DB>>::compatible(ty)
                }
            }

            impl<'q, DB: sqlx::Database> sqlx::Encode<'q, DB> for $name
            where
                String: sqlx::Encode<'q, DB>,
            {
                fn encode_by_ref(
                    &self,
                    buf: &mut <DB as sqlx::Database>::ArgumentBuffer,
                ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                    <String as sqlx::Encode<'q, DB>>::encode(self.as_str().to_owned(), buf)
                }
            }

            impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name
            where
                String: sqlx::Decode<'r, DB>,
            {
                fn decode(
                    value: <DB as sqlx::Database>::ValueRef<'r>,
                ) -> Result<Self, sqlx::error::BoxDynError> {
                    let text = <String as sqlx::Decode<'r, DB>>::decode(value)?;
                    Ok(text.parse()?)
                }
            }
        };
    };
}

/// A word that is not one of a closed set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not one of {}", accepted.join(", "))]
pub struct UnknownWord {
    pub text: String,
    pub accepted: &'static [&'static str],
}
