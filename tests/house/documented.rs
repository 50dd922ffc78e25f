//! Items that other rooms and authors of components use are documented.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, ImplItemFn, Item, ItemImpl, TraitItem, Visibility};

use super::paths::{files, is_test};
use super::rooms::host;

/// Whose public items are documented, relative to the folder of the host.
const DOCUMENTED: [&str; 4] = ["store/src", "runtime/src", "kernel/src", "../plugins-sdk/src"];

/// Public items of one file without a comment.
///
/// Fields and variants are left out: a row's fields are the columns of its table, and most are said by their name.
#[derive(Default)]
struct Silent {
    names: Vec<String>,
    /// The type whose methods are read.
    of: String,
    public: usize,
}

fn is_documented(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
}

impl Silent {
    fn judge(&mut self, visibility: &Visibility, attributes: &[Attribute], name: &dyn ToString) {
        if matches!(visibility, Visibility::Public(_)) && !is_test(attributes) {
            self.public += 1;
            if !is_documented(attributes) {
                self.names.push(format!("{}{}", self.of, name.to_string()));
            }
        }
    }
}

impl Visit<'_> for Silent {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Const(one) => self.judge(&one.vis, &one.attrs, &one.ident),
            Item::Enum(one) => self.judge(&one.vis, &one.attrs, &one.ident),
            Item::Fn(one) => self.judge(&one.vis, &one.attrs, &one.sig.ident),
            Item::Static(one) => self.judge(&one.vis, &one.attrs, &one.ident),
            Item::Struct(one) => self.judge(&one.vis, &one.attrs, &one.ident),
            Item::Type(one) => self.judge(&one.vis, &one.attrs, &one.ident),
            Item::Trait(one) => {
                self.judge(&one.vis, &one.attrs, &one.ident);
                if matches!(one.vis, Visibility::Public(_)) {
                    self.of = format!("{}::", one.ident);
                    for method in &one.items {
                        if let TraitItem::Fn(method) = method {
                            self.judge(&one.vis, &method.attrs, &method.sig.ident);
                        }
                    }
                    self.of.clear();
                }
            }
            Item::Macro(one) => {
                let is_public = one.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
                if let (true, Some(name)) = (is_public, &one.ident) {
                    self.judge(&Visibility::Public(syn::token::Pub::default()), &one.attrs, name);
                }
            }
            Item::Mod(one) if is_test(&one.attrs) => return,
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, block: &ItemImpl) {
        if let (None, syn::Type::Path(of)) = (&block.trait_, &*block.self_ty) {
            self.of = of.path.segments.last().map_or_else(String::new, |last| format!("{}::", last.ident));
        }
        visit::visit_item_impl(self, block);
        self.of.clear();
    }

    fn visit_impl_item_fn(&mut self, method: &ImplItemFn) {
        self.judge(&method.vis, &method.attrs, &method.sig.ident);
    }
}

fn silent(file: &Path) -> Silent {
    let text = fs::read_to_string(file).unwrap();
    let parsed: File = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut silent = Silent::default();
    silent.visit_file(&parsed);
    silent
}

#[test]
fn every_public_item_that_others_build_on_is_documented() {
    let mut undocumented: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for sources in DOCUMENTED {
        let (mut found, mut public) = (Vec::new(), 0);
        files(&host().join(sources), &mut found);
        for file in found {
            let silent = silent(&file);
            public += silent.public;
            if !silent.names.is_empty() {
                undocumented.insert(file.strip_prefix(host()).unwrap().to_owned(), silent.names);
            }
        }
        assert!(public > 10, "the items of {sources} were found: {public}");
    }
    let items: usize = undocumented.values().map(Vec::len).sum();
    assert!(undocumented.is_empty(), "{items} public items without a comment: {undocumented:#?}");
}

#[test]
fn a_public_item_without_a_comment_is_found() {
    let text = "
        pub struct Bare;
        /// Said.
        pub struct Said { pub field: u8 }
        pub(crate) struct Inner;
        impl Said { pub fn method(&self) {} fn own(&self) {} }
        impl Clone for Said { fn clone(&self) -> Said { Said } }
        /// Said.
        pub trait Verb { fn silent(); }
        #[macro_export]
        macro_rules! open { () => {} }
        #[cfg(test)]
        mod tests { pub fn helper() {} }
    ";
    let mut silent = Silent::default();
    silent.visit_file(&syn::parse_file(text).unwrap());
    assert_eq!(silent.names, ["Bare", "Said::method", "Verb::silent", "open"]);
}
