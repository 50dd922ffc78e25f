//! Where a body may hold `null`: only in fields that give it a meaning.
//!
//! Serde reads `null` as an absent field wherever a field is optional. So a client that sends `null` to clear a text
//! and one that sends it by mistake look alike. Bodies are read through [`Strict`], which refuses `null` except in
//! fields that are read by [`nullable`]. Free-form values (`serde_json::Value`) may hold it anywhere.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// The message for a `null` without meaning.
pub(super) const REFUSED: &str = "must not be null: leave the field out, or give it a value";

/// Name by which [`nullable`] tells [`Strict`] that the next value may be null.
const NULLABLE: &str = "$heddle::nullable";

/// For fields of updates that may be absent but not `null`.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// For fields of updates that `null` clears: absent is `None`, `null` is `Some(None)`.
///
/// Such a field also has `#[schemars(extend("x-nullable" = true))]`, so that the document shows it.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    or_null(deserializer).map(Some)
}

/// For fields in which `null` is a value, for example those that answers show as `null`. Marked like [`nullable`].
pub fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Inner<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Inner<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a value or null")
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            Option::deserialize(deserializer)
        }
    }
    deserializer.deserialize_newtype_struct(NULLABLE, Inner(PhantomData))
}

/// Wraps each deserializer and visitor that reads a body, and wraps all nested ones in the same way.
pub(super) struct Strict<T> {
    inner: T,
    /// The next optional value may be `null`.
    may_be_null: bool,
}

impl<T> Strict<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, may_be_null: false }
    }
}

macro_rules! pass_on {
    ($($method:ident($($name:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* Strict::new(visitor))
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    /// Only free-form values are read like this: they are not checked.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Strict { inner: visitor, may_be_null: self.may_be_null })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let may_be_null = name == NULLABLE;
        self.inner.deserialize_newtype_struct(name, Strict { inner: visitor, may_be_null })
    }

    /// A parser reports `null` in place of a word as broken JSON, so `null` is tested first.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Word { name, variants, visitor: Strict::new(visitor) })
    }

    pass_on! {
        deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64();
        deserialize_u128(); deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_str();
        deserialize_string(); deserialize_bytes(); deserialize_byte_buf(); deserialize_unit();
        deserialize_unit_struct(name: &'static str); deserialize_seq(); deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize); deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_identifier(); deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Reads one of several words; `null` is none of them.
struct Word<V> {
    name: &'static str,
    variants: &'static [&'static str],
    visitor: Strict<V>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Word<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        Err(E::custom(REFUSED))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        Err(E::custom(REFUSED))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_enum(self.name, self.variants, self.visitor)
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty;)+) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool; visit_i8: i8; visit_i16: i16; visit_i32: i32; visit_i64: i64; visit_i128: i128;
        visit_u8: u8; visit_u16: u16; visit_u32: u32; visit_u64: u64; visit_u128: u128; visit_f32: f32;
        visit_f64: f64; visit_char: char; visit_str: &str; visit_borrowed_str: &'de str; visit_string: String;
        visit_bytes: &[u8]; visit_borrowed_bytes: &'de [u8]; visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        if self.may_be_null { self.inner.visit_none() } else { Err(E::custom(REFUSED)) }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        if self.may_be_null { self.inner.visit_none() } else { self.inner.visit_unit() }
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Strict::new(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let may_be_null = self.may_be_null;
        self.inner.visit_newtype_struct(Strict { inner: deserializer, may_be_null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Strict::new(access))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Strict::new(access))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Strict::new(access))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Strict::new(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(Strict::new(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Strict::new(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Strict::new(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Strict::new(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Strict::new(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Strict::new(visitor))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::http::extract::parse;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        required: String,
        optional: Option<u32>,
        #[serde(default, deserialize_with = "given")]
        kept: Option<String>,
        #[serde(default, deserialize_with = "nullable")]
        cleared: Option<Option<Inner>>,
        #[serde(default)]
        free: Value,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default, deserialize_with = "given")]
        word: Option<Grade>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Grade {
        High,
        Low,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        name: Option<String>,
    }

    #[track_caller]
    fn refused(body: &Value, field: &str) {
        let error = parse::<Body>(body.to_string().as_bytes()).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains(&format!("\"{field}\"")) && text.contains("must not be null"), "{text}");
    }

    #[test]
    fn null_is_refused_where_it_means_nothing_and_the_field_is_named() {
        refused(&json!({ "required": null }), "required");
        refused(&json!({ "required": "a", "optional": null }), "optional");
        refused(&json!({ "required": "a", "kept": null }), "kept");
        refused(&json!({ "required": "a", "cleared": { "name": null } }), "cleared.name");
        refused(&json!({ "required": "a", "list": [{ "name": null }] }), "list[0].name");
        refused(&json!({ "required": "a", "list": null }), "list");
        refused(&json!({ "required": "a", "word": null }), "word");
    }

    #[test]
    fn null_is_accepted_where_it_clears_and_in_what_is_free_of_form() {
        let body = json!({ "required": "a", "cleared": null, "free": { "a": null } });
        let read: Body = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(read.cleared, Some(None));
        assert_eq!(read.free, json!({ "a": null }));
        let absent: Body = parse(br#"{"required":"a"}"#).unwrap();
        assert_eq!((absent.cleared, absent.optional), (None, None));
        let word: Body = parse(br#"{"required":"a","word":"low"}"#).unwrap();
        assert_eq!(word.word, Some(Grade::Low));
        assert_ne!(word.word, Some(Grade::High));
        let set: Body = parse(br#"{"required":"a","cleared":{"name":"b"},"optional":3}"#).unwrap();
        assert_eq!(set.cleared, Some(Some(Inner { name: Some("b".to_owned()) })));
        assert_eq!(set.optional, Some(3));
    }

    #[test]
    fn wrong_types_are_said_in_the_words_of_the_interface() {
        let said = |body: Value| format!("{:?}", parse::<Body>(body.to_string().as_bytes()).unwrap_err());
        let text = said(json!({ "required": 7 }));
        assert!(text.contains("must be a string, not the number 7"), "{text}");
        let text = said(json!({ "required": "a", "optional": -1 }));
        assert!(text.contains("must be a whole number from 0 to 4294967295, not the number -1"), "{text}");
        let text = said(json!({ "required": "a", "list": {} }));
        assert!(text.contains("must be an array, not an object"), "{text}");
        let text = said(json!({ "required": "a", "list": [true] }));
        assert!(text.contains("must be an object, not true"), "{text}");
    }
}
