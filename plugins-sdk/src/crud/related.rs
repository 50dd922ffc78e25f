//! Several changes of one plan that are about the same object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::asked;
use super::binding::worse;
use super::field::Content;
use super::model::names;
use super::part::{Beside, Draft};
use super::plan::{Drafts, Named, Taking, parent_of};
use crate::{Danger, Fault, fault};

impl Drafts<'_> {
    /// Notes what a change makes of an object: in the draft of the change before where one call can do both.
    pub(crate) fn touch(
        &mut self,
        taking: Taking<'_>,
        named: Named,
        (before, after): (Option<Content>, Option<Content>),
        asked: Content,
    ) -> Result<(), Fault> {
        let Taking { index, change, payload, list } = taking;
        let danger = self.features[&change.feature].danger_of_values(payload);
        let drafts = self.of_object(list, &named.id);
        self.refuse_moved(&drafts)?;
        let was_there = before.is_some();
        let binding = &self.model.lists[list].binding;
        let lost = match (&before, &after) {
            (Some(before), Some(_)) => asked::lost(binding, before, &asked),
            _ => Content::new(),
        };
        let same = self.same_call(&drafts, (&change.feature, &asked), (was_there, after.is_some()))?;
        let asked: BTreeSet<String> = asked.into_keys().collect();
        if let Some(at) = same {
            let draft = &mut self.all[at];
            draft.feature.clone_from(&change.feature);
            draft.after = after;
            if before.is_none() {
                draft.asked.clear();
            }
            draft.items.push(index);
            draft.asked.extend(asked);
            if draft.before.is_some() && draft.after.is_some() {
                for (name, value) in lost {
                    draft.lost.entry(name).or_insert(value);
                }
            } else {
                draft.lost.clear();
            }
            draft.danger = worse(draft.danger, danger);
            return Ok(());
        }
        let beside = self.beside(&drafts, &asked, after.is_none());
        let parent = parent_of(&self.model.lists[list].binding, payload);
        let draft = Draft {
            items: vec![index],
            before,
            after,
            asked,
            lost,
            danger,
            parent,
            beside,
            ..of(taking, named)
        };
        self.all.push(draft);
        Ok(())
    }

    /// The drafts that do something to an object, in their order.
    pub(crate) fn of_object(&self, list: usize, id: &str) -> Vec<usize> {
        let is_idle = |draft: &Draft| {
            draft.act.is_none() && draft.asked.is_empty() && draft.before.is_some() && draft.after.is_some()
        };
        let is_meant = |draft: &Draft| draft.list == Some(list) && draft.id == id && !is_idle(draft);
        let all = self.all.iter().enumerate();
        all.filter(|(_, draft)| is_meant(draft)).map(|(at, _)| at).collect()
    }

    /// Refuses a change of an object that a change before it moves to other paths: its calls would not meet it there.
    pub(crate) fn refuse_moved(&self, drafts: &[usize]) -> Result<(), Fault> {
        let moves = |draft: &&Draft| {
            let binding = draft.list.map(|list| &self.model.lists[list].binding);
            let is_param = |name: &String| {
                binding
                    .is_some_and(|binding| binding.params.values().any(|place| place == binding.place(name)))
            };
            draft.act.as_ref().is_some_and(|act| act.is_due) && draft.asked.iter().any(is_param)
        };
        match drafts.iter().map(|at| &self.all[*at]).find(moves) {
            None => Ok(()),
            Some(draft) => Err(fault::invalid(format!(
                "'{}' moves in this plan; stage what follows when it has moved",
                draft.name
            ))),
        }
    }

    /// The draft whose call a change becomes a part of: the last one of the object, where nothing in between matters.
    fn same_call(
        &self,
        drafts: &[usize],
        (feature, asked): (&str, &Content),
        (was_there, is_there): (bool, bool),
    ) -> Result<Option<usize>, Fault> {
        let Some(at) = drafts.last().copied() else { return Ok(None) };
        let (draft, behind) = (&self.all[at], &self.all[at + 1..]);
        // A call cannot name what only a later one creates.
        let is_new = |draft: &&Draft| draft.before.is_none() && draft.after.is_some();
        let leans = behind.iter().filter(is_new).any(|new| asked.values().any(|value| names(value, &new.id)));
        let is_again = match &draft.act {
            Some(act) => act.is_due,
            None => draft.before.is_some() || leans,
        };
        if !was_there && is_again {
            return Err(anew(&draft.name));
        }
        let fits = match (was_there, is_there) {
            // What stands in between may have to be written before an object goes.
            (_, false) => drafts.len() == 1 && (behind.is_empty() || draft.before.is_none()),
            (false, true) => true,
            (true, true) => draft.feature == feature && !leans,
        };
        Ok(Some(at).filter(|_| draft.act.is_none() && fits))
    }

    /// What drafts of the same object mean to a new one; they learn what it does.
    pub(crate) fn beside(&mut self, drafts: &[usize], asked: &BTreeSet<String>, is_gone: bool) -> Beside {
        let mut earlier = Content::new();
        for draft in drafts.iter().map(|at| &self.all[*at]) {
            let known = draft.before.as_ref().filter(|_| !draft.beside.is_made);
            let value = |name: &String| known.map(|known| known.get(name).cloned().unwrap_or_default());
            for (name, value) in draft.asked.iter().filter_map(|name| Some((name, value(name)?))) {
                let value = draft.beside.earlier.get(name).cloned().unwrap_or(value);
                earlier.entry(name.clone()).or_insert(value);
            }
        }
        let mut between: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (draft, name) in drafts
            .iter()
            .map(|at| &self.all[*at])
            .flat_map(|draft| draft.asked.intersection(asked).map(move |name| (draft, name)))
        {
            let value = draft.after.as_ref().and_then(|after| after.get(name)).cloned();
            between.entry(name.clone()).or_default().extend(value);
        }
        for at in drafts {
            let draft = &mut self.all[*at];
            let beside = &mut draft.beside;
            beside.is_gone |= is_gone || draft.after.is_none();
            beside.later.extend(asked.iter().cloned());
        }
        let is_made = drafts.iter().any(|at| self.all[*at].before.is_none());
        Beside { is_made, is_partial: !drafts.is_empty(), earlier, between, ..Beside::default() }
    }

    /// The same for what an action leads to.
    pub(crate) fn beside_action(
        &mut self,
        (list, id): (usize, &str),
        field: Option<&str>,
        is_gone: bool,
    ) -> Beside {
        let drafts = self.of_object(list, id);
        let asked = field.map(str::to_owned).into_iter().collect();
        self.beside(&drafts, &asked, is_gone)
    }
}

/// The same object would be taken away and made anew: what it is in the end cannot be told from what it was.
pub(crate) fn anew(name: &str) -> Fault {
    fault::invalid(format!(
        "'{name}' would be deleted and created in one plan; update it, or stage one after the other"
    ))
}

/// A draft that changes nothing yet.
pub(crate) fn of(taking: Taking<'_>, named: Named) -> Draft {
    let Named { id, place, name, key } = named;
    Draft {
        feature: taking.change.feature.clone(),
        list: Some(taking.list),
        place,
        id,
        name,
        key,
        parent: serde_json::Map::new(),
        items: vec![taking.index],
        before: None,
        after: None,
        asked: BTreeSet::new(),
        lost: Content::new(),
        danger: Danger::Normal,
        act: None,
        beside: Beside::default(),
    }
}
