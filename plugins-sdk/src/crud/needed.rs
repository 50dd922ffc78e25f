//! What a delete would take along or leave behind: while there is any, the delete is refused.

use serde_json::Value;

use super::binding::{Delete, NamedBy};
use super::field::{self, plain};
use super::model::{Model, names};
use super::plan::{Drafts, Named};
use crate::{Fault, FaultExt, fault};

impl Drafts<'_> {
    /// Refuses to delete an object that others need. What changes before this one delete does not count.
    pub(crate) fn refuse_needed(
        &mut self,
        (list, at): (usize, usize),
        delete: &Delete,
        named: &Named,
    ) -> Result<(), Fault> {
        for dependent in &delete.takes {
            let is_own = |value: &Value| names(value, &named.id);
            let own = self.model.dependents(list, (&dependent.kind, &[&dependent.field]), &is_own)?;
            if !own.is_empty() {
                let message = format!(
                    "the device would delete with {} '{}' what belongs to it ({}): {}; delete that first",
                    self.model.lists[list].binding.noun,
                    named.name,
                    dependent.kind,
                    own.join(", ")
                );
                return Err(fault::invalid(message).with_code("in-use"));
            }
        }
        match &delete.named_by {
            Some(named_by) => self.refuse_named((list, at), named_by, &named.name),
            None => Ok(()),
        }
    }

    fn refuse_named(
        &mut self,
        (list, at): (usize, usize),
        named_by: &NamedBy,
        name: &str,
    ) -> Result<(), Fault> {
        let object = self.model.lists[list].entries[at].object.as_ref();
        let called = object.and_then(|object| field::at(object, &named_by.by)).map(plain).unwrap_or_default();
        if called.is_empty() {
            return Ok(());
        }
        for (kind, fields) in &named_by.others {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            let others = self.model.dependents(list, (kind, &fields), &|value| is_named(value, &called))?;
            if !others.is_empty() {
                let noun = &self.model.lists[list].binding.noun;
                let others = others.join(", ");
                let message = format!(
                    "the {noun} '{name}' is named by {others} ({kind}), which would be left without it; change that first"
                );
                return Err(fault::conflict(message).with_code("in-use"));
            }
        }
        Ok(())
    }
}

/// Whether a value, or one of a list, is what an object is called, or its negation.
fn is_named(value: &Value, called: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| is_named(item, called)),
        value => {
            let text = plain(value);
            text.strip_prefix('!').unwrap_or(&text) == called
        }
    }
}

impl Model<'_> {
    /// Names of the objects of which a field has a certain value.
    fn dependents(
        &mut self,
        list: usize,
        (kind, fields): (&str, &[&str]),
        is_meant: &dyn Fn(&Value) -> bool,
    ) -> Result<Vec<String>, Fault> {
        let other = self.beside(list, kind)?.ok_or_else(|| {
            fault::unsupported(format!(
                "objects of kind '{kind}' have parents of their own and are not looked through"
            ))
        })?;
        let mut out = Vec::new();
        for at in 0..self.lists[other].entries.len() {
            if !self.lists[other].entries[at].is_writable {
                continue;
            }
            let content = self.read(other, at)?;
            if fields.iter().any(|field| content.get(*field).is_some_and(is_meant)) {
                let entry = &self.lists[other].entries[at];
                out.push(if entry.name.is_empty() { entry.id.clone() } else { entry.name.clone() });
            }
        }
        Ok(out)
    }
}
