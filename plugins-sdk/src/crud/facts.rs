//! What holds for a plan as a whole: its danger, what it activates, and whether there is a way back.

use super::Place;
use super::binding::{Activation, FeatureBinding, KindBinding, NewId, operation_word, worse};
use super::part::Draft;
use super::path::{filled, filled_with};
use crate::{Danger, Operation};

/// What holds for the whole plan.
pub(crate) struct Facts {
    pub(crate) danger: Danger,
    pub(crate) lockout_risk: bool,
    pub(crate) is_restorable: bool,
    pub(crate) activations: Vec<(Activation, Place)>,
    pub(crate) warnings: Vec<String>,
    /// What happens beside what was asked for.
    pub(crate) also: Vec<String>,
}

impl Default for Facts {
    fn default() -> Self {
        Facts {
            danger: Danger::Normal,
            lockout_risk: false,
            is_restorable: true,
            activations: Vec::new(),
            warnings: Vec::new(),
            also: Vec::new(),
        }
    }
}

impl Facts {
    pub(crate) fn note(&mut self, draft: &Draft, kind: Option<&KindBinding>, feature: &FeatureBinding) {
        let operation = match (&draft.before, &draft.after) {
            _ if draft.act.is_some() => Operation::Create,
            (None, _) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (Some(_), None) => Operation::Delete,
        };
        self.danger = worse(self.danger, worse(draft.danger, feature.danger_of(operation)));
        self.lockout_risk |= feature.lockout;
        self.note_way_back(draft, kind, (feature, operation));
        for activation in &feature.activate {
            if let Some(reach) = &activation.reach {
                let also = format!("activating this also acts on what others have saved: {reach}");
                if !self.also.contains(&also) {
                    self.also.push(also);
                }
            }
            let call = |(known, place): &(Activation, Place)| {
                (known.method, filled(&known.path, place, ""), filled_with(&known.with, place, ""))
            };
            let new = (activation.clone(), draft.place.clone());
            if !self.activations.iter().any(|known| call(known) == call(&new)) {
                self.activations.push(new);
            }
        }
    }

    fn note_way_back(
        &mut self,
        draft: &Draft,
        kind: Option<&KindBinding>,
        (feature, operation): (&FeatureBinding, Operation),
    ) {
        if let Some(act) = &draft.act {
            if feature.action.as_ref().is_none_or(|action| action.back.is_none() || action.effect.is_none()) {
                self.is_restorable = false;
                self.warn(format!("'{}' cannot be taken back", act.name));
            }
            return;
        }
        let Some(kind) = kind else { return };
        // Another id than before is a new object to what names it.
        let is_made_anew = || {
            let create = feature.create.as_ref();
            create
                .is_none_or(|create| !matches!(create.id, NewId::Chosen | NewId::Field(_)) && !kind.volatile)
        };
        let is_final = match operation {
            Operation::Delete => {
                feature.delete.as_ref().is_some_and(|delete| delete.is_final) || is_made_anew()
            }
            Operation::Create => feature.delete.is_none(),
            Operation::Update => false,
        };
        if is_final || draft.loses_unread(kind) {
            self.is_restorable = false;
            let word = operation_word(operation);
            self.warn(format!("the {word} of {} '{}' cannot be taken back", kind.noun, draft.name));
        }
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
