//! Short ways to make the interface's records.

use serde_json::Value;

use crate::{
    Body, Comparison, Completion, Description, Device, DeviceProfile, Fault, FaultExt, Method, NativeBody,
    NativeCall, Request, Response, Stage, Standing, Status, fault,
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
            method,
            path: path.into(),
            headers: Vec::new(),
            body: NativeBody::None,
            session: None,
            repeatable: false,
        }
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
            NativeBody::Form(_) | NativeBody::None => None,
        }
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

#[expect(clippy::derivable_impls, reason = "the type is generated")]
impl Default for Completion {
    fn default() -> Self {
        Completion { created: Vec::new(), warnings: Vec::new(), needs: Vec::new() }
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

impl Description {
    /// A vendor without areas, kinds or features yet.
    #[must_use]
    pub fn new(vendor: impl Into<String>, title: impl Into<String>) -> Self {
        Description {
            vendor: vendor.into(),
            title: title.into(),
            areas: Vec::new(),
            kinds: Vec::new(),
            features: Vec::new(),
        }
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
