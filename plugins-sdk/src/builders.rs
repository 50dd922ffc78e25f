//! Short ways to make the interface's records.

use serde_json::Value;

use crate::{
    Body, Comparison, Completion, Device, DeviceProfile, Fault, FaultExt, FileBody, FormPart, FoundValue,
    Hole, HoleSource, ItemResult, Method, NativeBody, NativeCall, PartValue, Readiness, Request, Response,
    Stage, Standing, Start, Status, fault,
};

impl Request {
    /// A request without a body or headers; the host's limits hold.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Request {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Body::None,
            timeout_ms: None,
            max_response_bytes: None,
        }
    }

    /// A GET of this path on the controller.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path)
    }

    /// The same with this JSON as its body. The host sends it in its own serialisation.
    #[must_use]
    pub fn with_json(mut self, body: &Value) -> Self {
        self.body = Body::Json(body.to_string());
        self
    }

    /// The same with a limit of its own. The host's limit holds where this one is longer.
    #[must_use]
    pub fn with_timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }
}

impl NativeCall {
    /// A call without a body, outside of any session, that is never sent twice.
    #[must_use]
    pub fn new(stage: Stage, method: Method, path: impl Into<String>) -> Self {
        NativeCall {
            stage,
            id: None,
            only_after: None,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: NativeBody::None,
            session: None,
            repeatable: false,
        }
    }

    /// The same with an id, by which holes name its answer.
    #[must_use]
    pub fn called(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same, left out where the call of the apply with this id never left: for what takes that one back. In the stage
    /// `abort`: what ends the job of the call with this id.
    #[must_use]
    pub fn only_after(mut self, id: impl Into<String>) -> Self {
        self.only_after = Some(id.into());
        self
    }

    /// The same with a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same in a session that the manifest declares.
    #[must_use]
    pub fn in_session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// The same with this JSON as its body.
    #[must_use]
    pub fn with_json(mut self, body: &Value) -> Self {
        self.body = NativeBody::Json(body.to_string());
        self
    }

    /// Its body, where that is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        match &self.body {
            NativeBody::Json(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }

    /// Texts of its body, in which references may stand.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match &self.body {
            NativeBody::None | NativeBody::File(_) => Vec::new(),
            NativeBody::Json(text) => vec![text.as_str()],
            NativeBody::Form(fields) => fields.iter().map(|(_, value)| value.as_str()).collect(),
            NativeBody::Multipart(parts) => parts.iter().filter_map(FormPart::as_text).collect(),
        }
    }

    /// The same with these parts as its body, in this order.
    #[must_use]
    pub fn with_multipart(mut self, parts: Vec<FormPart>) -> Self {
        self.body = NativeBody::Multipart(parts);
        self
    }

    /// The same with the bytes of a file as its body.
    #[must_use]
    pub fn with_file(mut self, file: FileBody) -> Self {
        self.body = NativeBody::File(file);
        self
    }

    /// The same with these form fields as its body, in this order.
    #[must_use]
    pub fn with_form(mut self, fields: Vec<(String, String)>) -> Self {
        self.body = NativeBody::Form(fields);
        self
    }

    /// The same, and a second one does nothing that the first did not.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

impl FormPart {
    /// A part that is a text.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        FormPart { name: name.into(), value: PartValue::Text(text.into()) }
    }

    /// A part that is a file.
    pub fn file(name: impl Into<String>, file: FileBody) -> Self {
        FormPart { name: name.into(), value: PartValue::File(file) }
    }

    /// Its text, where it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            PartValue::Text(text) => Some(text),
            PartValue::File(_) => None,
        }
    }
}

impl FileBody {
    /// The file that stands in a payload where its schema says `"x-file": true`; `None` where the value is none.
    #[must_use]
    pub fn of(given: &Value, content_type: impl Into<String>) -> Option<Self> {
        let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(FileBody { file: text("reference")?, name: text("name")?, content_type: content_type.into() })
    }
}

#[expect(clippy::derivable_impls, reason = "the type is generated")]
impl Default for Completion {
    fn default() -> Self {
        Completion {
            created: Vec::new(),
            warnings: Vec::new(),
            needs: Vec::new(),
            found: Vec::new(),
            items: Vec::new(),
        }
    }
}

impl ItemResult {
    /// The change at this place of the plan was done.
    #[must_use]
    pub fn done(index: u32) -> Self {
        ItemResult { index, failed: None }
    }

    /// The change at this place of the plan was not done.
    #[must_use]
    pub fn failed(index: u32, fault: Fault) -> Self {
        ItemResult { index, failed: Some(fault) }
    }
}

impl Hole {
    /// A value of the answer to the call of this id; it matches `pattern` as a whole and has at most 200 bytes.
    #[must_use]
    pub fn of_answer(
        name: impl Into<String>,
        call: impl Into<String>,
        pointer: impl Into<String>,
        pattern: impl Into<String>,
    ) -> Self {
        let source = HoleSource::Answer((call.into(), pointer.into()));
        Hole { name: name.into(), source, pattern: pattern.into(), max_bytes: 200 }
    }

    /// A value that is read by GET right before each call that names it.
    #[must_use]
    pub fn fresh(
        name: impl Into<String>,
        path: impl Into<String>,
        pointer: impl Into<String>,
        pattern: impl Into<String>,
    ) -> Self {
        let source = HoleSource::Fresh((path.into(), pointer.into()));
        Hole { name: name.into(), source, pattern: pattern.into(), max_bytes: 200 }
    }

    /// A value that the component finds at the device: [`FoundValue`].
    #[must_use]
    pub fn found(name: impl Into<String>, pattern: impl Into<String>) -> Self {
        Hole { name: name.into(), source: HoleSource::Found, pattern: pattern.into(), max_bytes: 200 }
    }

    /// What stands for the value in paths, headers and bodies.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{{{{hole.{}}}}}", self.name)
    }
}

impl FoundValue {
    /// The value that the component found for the hole of this name: a text, a number or a truth value.
    #[must_use]
    pub fn new(hole: impl Into<String>, value: &Value) -> Self {
        FoundValue { hole: hole.into(), value: value.to_string() }
    }
}

impl Readiness {
    /// From this call of the stage on.
    #[must_use]
    pub fn send(from: u32) -> Self {
        Readiness::Send(Start { from, found: Vec::new() })
    }
}

impl Response {
    /// The body as JSON; a `generic` fault with the status when it is none.
    pub fn json(&self) -> Result<Value, Fault> {
        serde_json::from_slice(&self.body).map_err(|_| {
            fault::generic(format!("the device answered status {} without JSON", self.status))
                .with_upstream_status(self.status)
        })
    }
}

impl Device {
    /// A device of unknown status that only has a name, which is its identity
    /// too: a base to fill in.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Device {
            identity: name.clone(),
            name,
            kind: String::new(),
            status: Status::Unknown,
            model: None,
            serial: None,
            firmware: None,
            mac: None,
            addresses: Vec::new(),
            site: None,
            attributes: "{}".to_owned(),
            measurements: "{}".to_owned(),
        }
    }
}

impl From<Standing> for Comparison {
    /// A comparison that tells the changes of a set not apart and saw nothing of others.
    fn from(standing: Standing) -> Self {
        Comparison { standing, items: Vec::new(), foreign: Vec::new() }
    }
}

impl DeviceProfile {
    /// A device without capabilities; its fingerprint is made of product and version.
    #[must_use]
    pub fn new(product: impl Into<String>, version: impl Into<String>) -> Self {
        let (product, version) = (product.into(), version.into());
        let fingerprint = format!("{product}/{version}");
        DeviceProfile { product, version, fingerprint, capabilities: Vec::new(), facts: Vec::new() }
    }
}
