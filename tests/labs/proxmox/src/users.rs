//! The routes below `/access`: users, their tokens, groups, roles and the access list.

use serde_json::{Value, json};

use crate::access::Token;
use crate::answer::{Call, Failure, Object, Outcome, field, split_list};
use crate::cluster::Cluster;
use crate::privileges::{Caller, Grant};
use crate::store::{merge, written};

impl Cluster {
    pub(crate) fn access_call(&mut self, call: &Call) -> Option<Outcome> {
        let tail = call.route.path.strip_prefix("/access")?;
        let method = call.route.method.as_str();
        Some(match (method, tail) {
            ("POST", "/ticket") => self.log_in(call),
            ("PUT", "/password") => self.change_password(call),
            ("GET", "/permissions") => {
                let caller = call.find("userid").map_or_else(|| call.caller.clone(), caller_of);
                Ok(self.permissions(&caller, call.find("path")))
            }
            ("GET", "/acl") => Ok(self
                .access
                .acl
                .iter()
                .map(|grant| {
                    json!({
                        "path": grant.path, "type": grant.kind, "ugid": grant.holder, "roleid": grant.role,
                        "propagate": u8::from(grant.propagates),
                    })
                })
                .collect()),
            ("PUT", "/acl") => self.change_acl(call),
            (_, tail) if tail.starts_with("/roles") => self.role_call(call),
            (_, tail) if tail.starts_with("/groups") => self.group_of_users_call(call),
            (_, tail) if tail.contains("/token") => self.token_call(call),
            (_, "/users" | "/users/{userid}") => self.user_call(call),
            _ => return None,
        })
    }

    fn change_password(&mut self, call: &Call) -> Outcome {
        let user = call.text("userid").to_owned();
        if !self.access.users.contains_key(&user) {
            return Err(Failure::refused(format!("no such user ('{user}')")));
        }
        self.access.passwords.insert(user, call.text("password").to_owned());
        Ok(Value::Null)
    }

    fn user_call(&mut self, call: &Call) -> Outcome {
        let id = call.text("userid").to_owned();
        let missing = || Failure::refused(format!("no such user ('{id}')"));
        let is_list = call.route.path == "/access/users";
        match call.route.method.as_str() {
            "GET" if is_list => Ok(self.list_users(call.flag("full"))),
            "GET" => self.read_user(&id),
            "POST" if self.access.users.contains_key(&id) => {
                Err(Failure::refused(format!("create user failed: user '{id}' already exists")))
            }
            "POST" => {
                let realm = id.rsplit('@').next().unwrap_or_default();
                if self.store.find("/access/domains", realm).is_none() {
                    return Err(Failure::refused(format!(
                        "create user failed: domain '{realm}' does not exist"
                    )));
                }
                let mut user = call.without(&["userid", "password"]);
                user.entry("enable".to_owned()).or_insert(Value::from(1));
                user.entry("expire".to_owned()).or_insert(Value::from(0));
                if let Some(password) = call.find("password") {
                    self.access.passwords.insert(id.clone(), password.to_owned());
                }
                self.access.users.insert(id, user);
                Ok(Value::Null)
            }
            "PUT" => {
                let user = self.access.users.get_mut(&id).ok_or_else(missing)?;
                let mut changes = call.without(&["userid", "append", "groups"]);
                if let Some(groups) = call.find("groups") {
                    let old = if call.flag("append") { field(user, "groups") } else { "" };
                    let joined: Vec<&str> = split_list(old).chain(split_list(groups)).collect();
                    changes.insert("groups".to_owned(), Value::from(joined.join(",")));
                }
                user.extend(changes);
                Ok(Value::Null)
            }
            _ => {
                self.access.users.remove(&id).ok_or_else(missing)?;
                self.access.passwords.remove(&id);
                self.access.tokens.retain(|(user, _), _| *user != id);
                let of_token = format!("{id}!");
                self.access.acl.retain(|grant| grant.holder != id && !grant.holder.starts_with(&of_token));
                Ok(Value::Null)
            }
        }
    }

    fn list_users(&self, with_tokens: bool) -> Value {
        self.access
            .users
            .iter()
            .map(|(id, user)| {
                let mut user = user.clone();
                user.insert("userid".to_owned(), Value::from(id.clone()));
                let realm = id.rsplit('@').next().unwrap_or_default();
                user.insert("realm-type".to_owned(), Value::from(realm));
                if with_tokens {
                    user.insert("tokens".to_owned(), Value::Array(self.tokens_of(id)));
                }
                Value::Object(user)
            })
            .collect()
    }

    fn read_user(&self, id: &str) -> Outcome {
        let missing = || Failure::refused(format!("no such user ('{id}')"));
        let mut user = self.access.users.get(id).ok_or_else(missing)?.clone();
        let groups: Vec<&str> = split_list(field(&user, "groups")).collect();
        let groups = json!(groups);
        user.insert("groups".to_owned(), groups);
        let tokens = self.tokens_of(id).into_iter().map(|mut token| {
            let name = token["tokenid"].take();
            (name.as_str().unwrap_or_default().to_owned(), token)
        });
        let tokens: Object = tokens.collect();
        user.insert("tokens".to_owned(), Value::Object(tokens));
        Ok(Value::Object(user))
    }

    fn tokens_of(&self, user: &str) -> Vec<Value> {
        let own = self.access.tokens.iter().filter(|((owner, _), _)| owner == user);
        own.map(|((_, name), token)| {
            let mut info = token.info.clone();
            info.insert("tokenid".to_owned(), Value::from(name.clone()));
            Value::Object(info)
        })
        .collect()
    }

    fn token_call(&mut self, call: &Call) -> Outcome {
        let (user, name) = (call.text("userid").to_owned(), call.text("tokenid").to_owned());
        let missing = Failure::refused(format!("no such token '{name}' for user '{user}'"));
        if !self.access.users.contains_key(&user) {
            return Err(Failure::refused(format!("no such user ('{user}')")));
        }
        let key = (user.clone(), name.clone());
        match call.route.method.as_str() {
            "GET" if call.route.path.ends_with("/token") => Ok(Value::Array(self.tokens_of(&user))),
            "GET" => Ok(Value::Object(self.access.tokens.get(&key).ok_or(missing)?.info.clone())),
            "POST" if self.access.tokens.contains_key(&key) => {
                Err(Failure::parameter("tokenid", "Token already exists."))
            }
            "POST" => {
                let mut info = written(call);
                info.entry("privsep".to_owned()).or_insert(Value::from(1));
                info.entry("expire".to_owned()).or_insert(Value::from(0));
                let secret = self.fresh_uuid();
                self.access.tokens.insert(key, Token { info: info.clone(), secret: secret.clone() });
                // The only time that the secret is shown.
                Ok(json!({ "full-tokenid": format!("{user}!{name}"), "info": info, "value": secret }))
            }
            "PUT" => {
                let changes = written(call);
                let regenerated = call.flag("regenerate").then(|| self.fresh_uuid());
                let token = self.access.tokens.get_mut(&key).ok_or(missing)?;
                let removed = call.list("delete");
                merge(&mut token.info, changes, &removed);
                token.info.shift_remove("regenerate");
                let mut answer = token.info.clone();
                if let Some(secret) = regenerated {
                    token.secret.clone_from(&secret);
                    answer.insert("value".to_owned(), Value::from(secret));
                }
                Ok(Value::Object(answer))
            }
            _ => {
                self.access.tokens.remove(&key).ok_or(missing)?;
                let holder = format!("{user}!{name}");
                self.access.acl.retain(|grant| grant.holder != holder);
                Ok(Value::Null)
            }
        }
    }

    fn group_of_users_call(&mut self, call: &Call) -> Outcome {
        let id = call.text("groupid").to_owned();
        let missing = || Failure::refused(format!("group '{id}' does not exist"));
        let members = |id: &str| -> Vec<String> {
            let users = self.access.users.iter();
            let inside = users.filter(|(_, user)| split_list(field(user, "groups")).any(|group| group == id));
            inside.map(|(user, _)| user.clone()).collect()
        };
        match call.route.method.as_str() {
            "GET" if call.route.path == "/access/groups" => Ok(self
                .access
                .groups
                .iter()
                .map(|(id, group)| {
                    let mut group = group.clone();
                    group.insert("groupid".to_owned(), Value::from(id.clone()));
                    group.insert("users".to_owned(), Value::from(members(id).join(",")));
                    Value::Object(group)
                })
                .collect()),
            "GET" => {
                let mut group = self.access.groups.get(&id).ok_or_else(missing)?.clone();
                group.insert("members".to_owned(), json!(members(&id)));
                Ok(Value::Object(group))
            }
            "POST" if self.access.groups.contains_key(&id) => {
                Err(Failure::refused(format!("create group failed: group '{id}' already exists")))
            }
            "POST" => {
                self.access.groups.insert(id, call.without(&["groupid"]));
                Ok(Value::Null)
            }
            "PUT" => {
                self.access.groups.get_mut(&id).ok_or_else(missing)?.extend(call.without(&["groupid"]));
                Ok(Value::Null)
            }
            _ => {
                self.access.groups.remove(&id).ok_or_else(missing)?;
                self.access.acl.retain(|grant| grant.kind != "group" || grant.holder != id);
                Ok(Value::Null)
            }
        }
    }

    fn role_call(&mut self, call: &Call) -> Outcome {
        let id = call.text("roleid").to_owned();
        let is_built_in = |id: &str| crate::privileges::built_in_roles().contains_key(id);
        let missing = || Failure::refused(format!("role '{id}' does not exist"));
        let method = call.route.method.as_str();
        if matches!(method, "PUT" | "DELETE") && is_built_in(&id) {
            return Err(Failure::refused(format!("auto-generated role '{id}' cannot be modified")));
        }
        match method {
            "GET" if call.route.path == "/access/roles" => {
                let shown = self.access.roles.iter().map(|(id, privileges)| {
                    let privileges: Vec<&str> = privileges.iter().map(String::as_str).collect();
                    json!({ "roleid": id, "privs": privileges.join(","), "special": u8::from(is_built_in(id)) })
                });
                Ok(shown.collect())
            }
            "GET" => {
                let privileges = self.access.roles.get(&id).ok_or_else(missing)?;
                Ok(privileges.iter().map(|name| (name.clone(), Value::from(1))).collect())
            }
            "POST" if self.access.roles.contains_key(&id) => {
                Err(Failure::refused(format!("create role failed: role '{id}' already exists")))
            }
            "POST" | "PUT" => {
                let (given, all) = (call.list("privs"), crate::privileges::all());
                if let Some(unknown) = given.iter().find(|name| !all.contains(*name)) {
                    return Err(Failure::refused(format!("invalid privilege '{unknown}'")));
                }
                if method == "PUT" && !self.access.roles.contains_key(&id) {
                    return Err(missing());
                }
                let role = self.access.roles.entry(id).or_default();
                if !call.flag("append") {
                    role.clear();
                }
                role.extend(given);
                Ok(Value::Null)
            }
            _ => {
                self.access.roles.remove(&id).ok_or_else(missing)?;
                self.access.acl.retain(|grant| grant.role != id);
                Ok(Value::Null)
            }
        }
    }

    fn change_acl(&mut self, call: &Call) -> Outcome {
        let path = match call.text("path").trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let propagates = call.integer("propagate") != Some(0);
        for (list, kind) in [("users", "user"), ("groups", "group"), ("tokens", "token")] {
            for holder in call.list(list) {
                let is_known = match kind {
                    "user" => self.access.users.contains_key(&holder),
                    "group" => self.access.groups.contains_key(&holder),
                    _ => holder.split_once('!').is_some_and(|(user, token)| {
                        self.access.tokens.contains_key(&(user.to_owned(), token.to_owned()))
                    }),
                };
                if !is_known {
                    return Err(Failure::refused(format!("{kind} '{holder}' does not exist")));
                }
                for role in call.list("roles") {
                    if !self.access.roles.contains_key(&role) {
                        return Err(Failure::refused(format!("role '{role}' does not exist")));
                    }
                    self.access.acl.retain(|grant| {
                        (&grant.path, grant.kind.as_str(), &grant.holder, &grant.role)
                            != (&path, kind, &holder, &role)
                    });
                    if !call.flag("delete") {
                        let (path, holder, kind) = (path.clone(), holder.clone(), kind.to_owned());
                        self.access.acl.push(Grant { path, kind, holder, role, propagates });
                    }
                }
            }
        }
        Ok(Value::Null)
    }
}

fn caller_of(id: &str) -> Caller {
    match id.split_once('!') {
        Some((user, token)) => Caller { user: user.to_owned(), token: Some(token.to_owned()) },
        None => Caller::user(id),
    }
}
