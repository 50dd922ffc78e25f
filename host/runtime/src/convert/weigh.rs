//! How much what a component answers takes.

use crate::bindings::exports::heddle::adapter::{changes, inventory, lifecycle};
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::http;
use crate::bindings::plugin::exports::heddle::plugin::inbound;

/// About how many bytes an answer has, found without reading them.
pub(crate) trait Weigh {
    fn bytes(&self) -> usize;
}

impl Weigh for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Weigh for () {
    fn bytes(&self) -> usize {
        0
    }
}

impl Weigh for inbound::Response {
    fn bytes(&self) -> usize {
        self.body.len() + self.content_type.as_ref().map_or(0, String::len)
    }
}

impl Weigh for Option<String> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, String::len)
    }
}

impl Weigh for lifecycle::DeviceProfile {
    fn bytes(&self) -> usize {
        let facts = self.facts.iter().map(|fact| fact.key.len() + fact.value.len());
        facts.sum::<usize>() + self.product.len() + self.version.len() + self.capabilities.len()
    }
}

impl Weigh for inventory::DevicePage {
    fn bytes(&self) -> usize {
        let of = |d: &inventory::Device| d.attributes.len() + d.measurements.len() + d.name.len() + 64;
        self.items.iter().map(of).sum()
    }
}

impl Weigh for inventory::Object {
    fn bytes(&self) -> usize {
        self.body.len() + 64
    }
}

impl Weigh for inventory::ObjectPage {
    fn bytes(&self) -> usize {
        self.items.iter().map(Weigh::bytes).sum()
    }
}

impl Weigh for inventory::SitePage {
    fn bytes(&self) -> usize {
        self.items.iter().map(|site| site.id.len() + site.name.len()).sum()
    }
}

impl Weigh for inventory::ModelPage {
    fn bytes(&self) -> usize {
        self.items.iter().map(|object| object.fields.len() + object.key.len() + object.label.len() + 64).sum()
    }
}

impl Weigh for http::SavedFile {
    fn bytes(&self) -> usize {
        self.reference.len()
    }
}

impl Weigh for Vec<Vec<changes::Change>> {
    fn bytes(&self) -> usize {
        self.iter().flatten().map(|change| change.payload.len() + change.feature.len() + 32).sum()
    }
}

impl Weigh for changes::ChangePlan {
    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let steps = self.steps.iter().map(|s| s.summary.len() + length(&s.before) + length(&s.after) + 64);
        let pairs = |pairs: &[(String, String)]| pairs.iter().map(|(a, b)| a.len() + b.len() + 8).sum();
        let of_file =
            |file: &changes::FileBody| file.file.len() + file.name.len() + file.content_type.len() + 64;
        let of_part = |part: &changes::Part| match &part.value {
            changes::PartValue::Text(text) => part.name.len() + text.len() + 64,
            changes::PartValue::File(file) => part.name.len() + of_file(file),
        };
        let body = |body: &changes::NativeBody| match body {
            changes::NativeBody::None => 0,
            changes::NativeBody::Json(text) => text.len(),
            changes::NativeBody::Form(fields) => pairs(fields),
            changes::NativeBody::File(file) => of_file(file),
            changes::NativeBody::Multipart(parts) => parts.iter().map(of_part).sum(),
        };
        let native = self.native.iter().map(|call| {
            let names = length(&call.id) + length(&call.only_after);
            call.path.len() + names + body(&call.body) + pairs(&call.headers) + 64
        });
        let inverse = self.inverse.iter().flatten().map(|change| change.payload.len());
        steps.chain(native).chain(inverse).sum()
    }
}

impl Weigh for changes::Readiness {
    fn bytes(&self) -> usize {
        match self {
            changes::Readiness::Send(start) => start.found.iter().map(|value| value.value.len()).sum(),
            changes::Readiness::Nothing(done) => done.warnings.iter().map(String::len).sum(),
        }
    }
}

impl Weigh for types::Outcome {
    fn bytes(&self) -> usize {
        match self {
            types::Outcome::Done(done) => {
                let texts: usize = done.warnings.iter().chain(&done.needs).map(String::len).sum();
                texts + done.items.len() * 64
            }
            types::Outcome::Pending(task) => task.message.as_ref().map_or(0, String::len),
            types::Outcome::Failed(_) => 0,
        }
    }
}

impl Weigh for changes::Comparison {
    fn bytes(&self) -> usize {
        let foreign: usize = self.foreign.iter().map(String::len).sum();
        self.items.iter().map(Weigh::bytes).sum::<usize>() + self.standing.bytes() + foreign
    }
}

impl Weigh for changes::Standing {
    fn bytes(&self) -> usize {
        match self {
            changes::Standing::Adjusted(what)
            | changes::Standing::MovedOn(what)
            | changes::Standing::Other(what) => what.len(),
            changes::Standing::Stored(needs) => needs.iter().map(String::len).sum(),
            changes::Standing::Before | changes::Standing::After | changes::Standing::Unseen => 0,
        }
    }
}
