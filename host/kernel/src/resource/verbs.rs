//! The routes of a kind of object.

use std::marker::PhantomData;

use axum::handler::Handler;
use heddle_core::page::Page;
use schemars::JsonSchema;

use super::{Listed, Resource};
use crate::app::SharedApp;
use crate::http::access::Access;
use crate::http::routes::{Doc, Routes};

/// Collects the routes of a kind of object. Each verb takes its handler: a function of this module, or the kind's own.
pub struct Verbs<R> {
    routes: Routes,
    one: String,
    read: Access,
    write: Access,
    of: PhantomData<fn() -> R>,
}

impl<R: Resource> Verbs<R>
where
    R::View: JsonSchema,
{
    /// Begins with the name of the parameter that holds an object's id, and with which callers may read and write.
    pub fn of(parameter: &str, read: Access, write: Access) -> Self {
        let one = format!("{}/{{{parameter}}}", R::PATH);
        Self { routes: Routes::default(), one, read, write, of: PhantomData }
    }

    /// Adds `GET` of the list, with the query that the kind declares.
    #[must_use]
    pub fn listed(self, doc: impl Into<Doc>) -> Self
    where
        R: Listed,
    {
        self.list::<R::Query, _, _>(super::list::<R>, doc)
    }

    /// Adds `GET` of the list, with this query.
    #[must_use]
    pub fn list<Q: JsonSchema, H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let doc = doc.into().query::<Q>().answers::<Page<R::View>>(200);
        let access = self.read;
        self.adding(|routes, _| routes.get(R::PATH, access, handler, doc))
    }

    /// Adds `POST`, with this body.
    #[must_use]
    pub fn create<B: JsonSchema, H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        self.create_as::<B, R::View, H, T>(handler, doc)
    }

    /// Adds `POST` whose answer shows more than others do: a secret, this once.
    #[must_use]
    pub fn create_as<B: JsonSchema, V: JsonSchema, H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let doc = doc.into().body::<B>().answers::<V>(201);
        let access = self.write;
        self.adding(|routes, _| routes.post(R::PATH, access, handler, doc))
    }

    /// Adds `GET` of one.
    #[must_use]
    pub fn get<H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let (doc, access) = (doc.into().answers::<R::View>(200), self.read);
        self.adding(|routes, one| routes.get(one, access, handler, doc))
    }

    /// Adds `PATCH`, with this body.
    #[must_use]
    pub fn update<B: JsonSchema, H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let (doc, access) = (doc.into().body::<B>().answers::<R::View>(200), self.write);
        self.adding(|routes, one| routes.patch(one, access, handler, doc))
    }

    /// Lets these callers, instead of those that write, use the verbs that follow.
    #[must_use]
    pub fn writing(self, write: Access) -> Self {
        Self { write, ..self }
    }

    /// Adds `DELETE`.
    #[must_use]
    pub fn remove<H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let (doc, access) = (doc.into().empty(204), self.write);
        self.adding(|routes, one| routes.delete(one, access, handler, doc))
    }

    /// Adds `POST …/restore`.
    #[must_use]
    pub fn restore<H, T>(self, handler: H, doc: impl Into<Doc>) -> Self
    where
        H: Handler<T, SharedApp>,
        T: 'static,
    {
        let (doc, access) = (doc.into().answers::<R::View>(200), self.write);
        self.adding(|routes, one| routes.post(&format!("{one}/restore"), access, handler, doc))
    }

    /// Returns the routes, in the order in which they were added.
    pub fn routes(self) -> Routes {
        self.routes
    }

    fn adding(mut self, add: impl FnOnce(Routes, &str) -> Routes) -> Self {
        self.routes = add(self.routes, &self.one);
        self
    }
}
