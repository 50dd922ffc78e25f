//! The table that builds the router, the `OpenAPI` document and the access tests.
//!
//! A route cannot be registered without declaring which callers may use it and what it answers.

use std::borrow::Cow;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::app::SharedApp;
use crate::http::access::{Access, Gate, guard};
use crate::http::body::BODY_BYTES_MAX;
use crate::http::glossary::Glossary;
use crate::http::prefix::PREFIX;

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What sets a route apart from others of its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The body is a form, not JSON.
    Form,
    /// The handler waits for a controller, so faults of controllers can be answered.
    CallsAdapter,
    /// A switch of the platform can refuse it, with a body outside the envelope.
    Switched,
    /// It answers one object, with its `ETag`, although no PATCH changes that.
    Tagged,
    /// It honours no `If-Match`, although it is a DELETE: its object never changes.
    Untagged,
    /// It honours `If-Match`, although it is neither PATCH nor DELETE.
    AsSeen,
    /// It honours `Idempotency-Key`, although it answers no new object.
    Keyed,
    /// When it succeeds, identities or rights may have changed: cached callers are dropped.
    ChangesCallers,
    /// It concerns how its user signs in. A token of an app gets the answer that a session is needed; its scopes would
    /// not open the route either.
    Personal,
    /// It takes a password, a code or an address to write to: each try uses one of the five tries that an address has
    /// per minute.
    LimitedAsLogin,
    /// No limit counts it: probes ask often and must always get an answer.
    Unlimited,
    /// Its handler reads the body while it comes. The time for a body is then for each megabyte of it, and the caller is
    /// judged again when all of it is there.
    Streams,
    /// No CSRF token is asked for: the request needs no session (login, refresh by a `SameSite=Strict` cookie, callbacks), its
    /// form carries a token, or an app proves itself.
    OwnProof,
}

/// What a route's document says.
#[derive(Debug, Clone)]
pub struct Doc {
    pub summary: &'static str,
    /// Name of the operation, where it does not follow from method and path.
    pub(crate) name: Option<Cow<'static, str>>,
    /// Name and subject of its group, where the first segment of the path does not tell.
    pub(crate) group: Option<(String, String)>,
    pub status: u16,
    pub query: Option<SchemaOf>,
    pub body: Option<SchemaOf>,
    /// Media type of a body that is a file, and the most bytes that it may have.
    pub file: Option<(&'static str, usize)>,
    /// A form that also holds the file.
    pub file_form: Option<SchemaOf>,
    pub answer: Option<SchemaOf>,
    /// Schema of the body's `payload`, where it is known only at run time.
    pub payload: Option<serde_json::Value>,
    pub marks: Vec<Mark>,
    /// Statuses of failures beyond those that follow from the route itself.
    pub fails_with: Vec<u16>,
    /// A value for a path parameter that is not an id, or for a parameter of the query.
    pub examples: Vec<(&'static str, String)>,
    /// A body as a user would send it, where no file of examples has one.
    pub sample: Option<serde_json::Value>,
    /// Media type of an answer that is not JSON: `text/csv`.
    pub media: Option<&'static str>,
    /// Further answers with bodies of their own.
    pub also: Vec<(u16, SchemaOf)>,
    /// Statuses that are also answered with a page for people.
    pub pages: Vec<u16>,
}

/// Begins the document of a route that answers 200.
pub fn doc(summary: &'static str) -> Doc {
    Doc {
        summary,
        name: None,
        group: None,
        status: 200,
        query: None,
        body: None,
        file: None,
        file_form: None,
        answer: None,
        payload: None,
        marks: Vec::new(),
        fails_with: Vec::new(),
        examples: Vec::new(),
        sample: None,
        media: None,
        also: Vec::new(),
        pages: Vec::new(),
    }
}

impl From<&'static str> for Doc {
    fn from(summary: &'static str) -> Self {
        doc(summary)
    }
}

impl Doc {
    /// Names the operation: clients have a method of this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Puts the operation into a group of this name, with its subject in a sentence.
    #[must_use]
    pub fn grouped(mut self, name: &str, about: &str) -> Self {
        self.group = Some((name.to_owned(), about.to_owned()));
        self
    }

    /// Documents the parameters of the query: one for each field of `T`. It checks nothing: the handler takes
    /// them by [`Params`](crate::http::extract::Params).
    #[must_use]
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    /// Documents the body, which the document calls required. It checks nothing: the handler takes the body
    /// by [`Json`](crate::http::extract::Json).
    #[must_use]
    pub fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Takes a file of this media type and at most so many bytes, which may be more than other bodies have. The handler
    /// takes it by [`File`](crate::http::extract::File).
    #[must_use]
    pub fn takes(mut self, media: &'static str, bytes_max: usize) -> Self {
        self.file = Some((media, bytes_max));
        self
    }

    /// Takes the file also in a form (`multipart/form-data`) with the fields of `T`.
    #[must_use]
    pub fn takes_in_form<T: JsonSchema>(mut self) -> Self {
        self.file_form = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Takes the file while it comes, by [`Incoming`](crate::http::incoming::Incoming): it is too large for the memory.
    #[must_use]
    pub fn streams(self) -> Self {
        self.mark(Mark::Streams)
    }

    /// Takes a form, as OAuth 2.0 sends it.
    #[must_use]
    pub fn form<T: JsonSchema>(self) -> Self {
        self.mark(Mark::Form).body::<T>()
    }

    /// Documents the status of a success and its JSON body. With 201 the guard honours `Idempotency-Key`
    /// unless the route is public, so the handler has to answer by
    /// [`Creation`](crate::http::creation::Creation).
    #[must_use]
    pub fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        self.status = status;
        self.answer = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Gives an example of the body, where it is known only at run time.
    #[must_use]
    pub fn sample(mut self, body: Option<serde_json::Value>) -> Self {
        self.sample = body;
        self
    }

    /// Gives an example of a path parameter that is not an id, or of a parameter of the query.
    #[must_use]
    pub fn example(mut self, parameter: &'static str, value: Option<&str>) -> Self {
        self.examples.extend(value.map(|value| (parameter, value.to_owned())));
        self
    }

    /// Answers 200 with a body of this media type: text, or plain bytes.
    #[must_use]
    pub fn answers_text(mut self, media: &'static str) -> Self {
        self.media = Some(media);
        self
    }

    /// Answers one object with its `ETag`.
    #[must_use]
    pub fn tagged(self) -> Self {
        self.mark(Mark::Tagged)
    }

    /// Changes or removes an object that has no `ETag`.
    #[must_use]
    pub fn untagged(self) -> Self {
        self.mark(Mark::Untagged)
    }

    /// Its handler checks a credential of the body, which can be wrong (401) or belong to a locked account (423).
    #[must_use]
    pub fn checks_credential(self) -> Self {
        self.fails_with(401).fails_with(423)
    }

    /// Acts on an object only in the state that the client saw, where `If-Match` names one.
    #[must_use]
    pub fn as_seen(self) -> Self {
        self.mark(Mark::AsSeen)
    }

    /// Answers this status without a body.
    #[must_use]
    pub fn empty(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Answers this status, too, with its own body: for example readiness that is not reached.
    #[must_use]
    pub fn also_answers<T: JsonSchema>(mut self, status: u16) -> Self {
        self.also.push((status, SchemaGenerator::subschema_for::<T>));
        self
    }

    /// Redirects a browser: 303, with a short page.
    #[must_use]
    pub fn redirects(mut self) -> Self {
        self.status = 303;
        self.media = Some("text/html");
        self
    }

    /// Answers this status, too, with a page for people.
    #[must_use]
    pub fn shows(mut self, status: u16) -> Self {
        self.pages.push(status);
        self
    }

    /// Fails with this status, too, in the envelope.
    #[must_use]
    pub fn fails_with(mut self, status: u16) -> Self {
        self.fails_with.push(status);
        self
    }

    /// Waits for a controller: its refusals and timeouts are answered as 502, 504 and 429.
    #[must_use]
    pub fn calls_adapter(self) -> Self {
        self.mark(Mark::CallsAdapter)
    }

    /// A switch of the platform can refuse it: 403 with `{detail}`, outside the envelope.
    #[must_use]
    pub fn switched(self) -> Self {
        self.mark(Mark::Switched)
    }

    /// Sent again with its `Idempotency-Key`, it has no further effect.
    #[must_use]
    pub fn keyed(self) -> Self {
        self.mark(Mark::Keyed)
    }

    /// When it succeeds, identities or rights may have changed.
    #[must_use]
    pub fn changes_callers(self) -> Self {
        self.mark(Mark::ChangesCallers)
    }

    /// It concerns how its user signs in: no app can use it.
    #[must_use]
    pub fn personal(self) -> Self {
        self.mark(Mark::Personal)
    }

    /// It takes a password, a code or an address to write to, and has the limit of such routes.
    #[must_use]
    pub fn limited_as_login(self) -> Self {
        self.mark(Mark::LimitedAsLogin)
    }

    /// No limit counts it.
    #[must_use]
    pub fn unlimited(self) -> Self {
        self.mark(Mark::Unlimited)
    }

    /// Needs no CSRF token: [`Mark::OwnProof`] says why.
    #[must_use]
    pub fn own_proof(self) -> Self {
        self.mark(Mark::OwnProof)
    }

    fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// Returns whether the route carries this mark. The guard, the limits and the document ask for marks in
    /// this way.
    pub fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }
}

/// Describes one entry of the table. Only the methods of [`Routes`] make it, so that no route lacks a
/// declaration of its callers.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    /// Without the version prefix: `/sites/{site_id}`.
    pub path: String,
    pub access: Access,
    pub doc: Doc,
    handler: MethodRouter<SharedApp>,
}

/// Collects the routes of a feature, or of the whole server, in the order in which they were added. Two
/// routes of the same method and path panic when the server builds its router.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    routes: Vec<Route>,
    /// How the document speaks of them.
    pub(crate) glossaries: Vec<&'static Glossary>,
}

impl Routes {
    /// Adds a route for GET, which also answers HEAD. Its handler must change nothing, because no CSRF token
    /// is asked for. Like all paths here, the path has no prefix of the version.
    #[must_use]
    pub fn get<H, T>(self, path: &str, access: Access, handler: H, doc: Doc) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.add(Method::GET, path, access, on(MethodFilter::GET, handler), doc)
    }

    /// Adds a route for POST. The guard asks browsers for a CSRF token, unless the route has a proof of its
    /// own, and reads the whole body before the handler runs.
    #[must_use]
    pub fn post<H, T>(self, path: &str, access: Access, handler: H, doc: Doc) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.add(Method::POST, path, access, on(MethodFilter::POST, handler), doc)
    }

    /// Adds a route that sets something as a whole, whether it was there or not. Where the document is to promise
    /// `If-Match`, it is `as_seen`.
    #[must_use]
    pub fn put<H, T>(self, path: &str, access: Access, handler: H, doc: Doc) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.add(Method::PUT, path, access, on(MethodFilter::PUT, handler), doc)
    }

    /// Adds a route that changes parts of an object. Where its path ends in a parameter, the document
    /// promises `If-Match`, unless it is `untagged`; the handler then checks an
    /// [`IfMatch`](crate::http::conditional::IfMatch).
    #[must_use]
    pub fn patch<H, T>(self, path: &str, access: Access, handler: H, doc: Doc) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.add(Method::PATCH, path, access, on(MethodFilter::PATCH, handler), doc)
    }

    /// Adds a route that removes an object. Where its path ends in a parameter, the document promises
    /// `If-Match`, unless it is `untagged`; the handler then checks an
    /// [`IfMatch`](crate::http::conditional::IfMatch).
    #[must_use]
    pub fn delete<H, T>(self, path: &str, access: Access, handler: H, doc: Doc) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.add(Method::DELETE, path, access, on(MethodFilter::DELETE, handler), doc)
    }

    fn add(
        mut self,
        method: Method,
        path: &str,
        access: Access,
        handler: MethodRouter<SharedApp>,
        doc: Doc,
    ) -> Self {
        self.routes.push(Route { method, path: path.to_owned(), access, doc, handler });
        self
    }

    /// Adds the routes of another table behind those of this one. Routes that both have are not noticed here,
    /// but when the server builds its router.
    #[must_use]
    pub fn merge(mut self, other: Routes) -> Self {
        self.routes.extend(other.routes);
        self.glossaries.extend(other.glossaries);
        self
    }

    /// The same routes, with words for their document.
    #[must_use]
    pub(crate) fn speaking(mut self, glossary: &'static Glossary) -> Self {
        self.glossaries.push(glossary);
        self
    }

    /// Applies the same description to each of these routes.
    #[must_use]
    pub fn each(mut self, say: impl Fn(Doc) -> Doc) -> Self {
        self.routes = self.routes.into_iter().map(|route| Route { doc: say(route.doc), ..route }).collect();
        self
    }

    /// Marks those of these routes that write: when they succeed, identities or rights may have changed.
    #[must_use]
    pub fn changing_callers(mut self) -> Self {
        for route in self.routes.iter_mut().filter(|route| !route.method.is_safe()) {
            route.doc.marks.push(Mark::ChangesCallers);
        }
        self
    }

    /// Goes through the routes in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// Every route behind its guard, below the prefix of the version.
    pub(crate) fn into_router(self, app: &SharedApp) -> Router<SharedApp> {
        self.routes.into_iter().fold(Router::new(), |router, route| {
            let gate = Gate {
                access: route.access,
                creates: route.doc.status == 201 || route.doc.has(Mark::Keyed),
                changes_callers: route.doc.has(Mark::ChangesCallers),
                is_personal: route.doc.has(Mark::Personal),
                has_own_proof: route.doc.has(Mark::OwnProof),
                streams: route.doc.has(Mark::Streams),
                body_bytes_max: route.doc.file.map_or(BODY_BYTES_MAX, |(_, max)| max),
            };
            let guard = axum::middleware::from_fn_with_state((app.clone(), gate), guard);
            let mut handler = route.handler.route_layer(guard);
            if route.doc.file.is_some() {
                // In the place of the limit that all routes share.
                handler = handler.route_layer(DefaultBodyLimit::max(gate.body_bytes_max));
            }
            router.route(&format!("{PREFIX}{}", route.path), handler)
        })
    }
}
