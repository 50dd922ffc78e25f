//! A simulated hypervisor cluster that speaks the API of Proxmox VE and keeps state, for tests and for the demo.
//!
//! Parameters are verified against `facts.json`, the names, types and ranges of the published API schema; what a
//! collection can do follows from the grammar of its paths. Guests, tasks, firewall, networks and storages behave by
//! hand-written code, traps included, so that a test asserts on the device and not on a call. No guest runs.
//!
//! [`Proxmox`] is the controller that a `heddle_lab::Lab` serves; [`Setup`] is what can be chosen. Accounts are
//! `root@pam`, `auditor@pve` and `operator@pve` (passwords: the setup's, `auditor`, `operator`); tokens are
//! [`ROOT_TOKEN`] and [`AUDITOR_TOKEN`].
//!
//! Faults of its own, each a `Fault::vendor(name, args)`. The first three last as long as they are set:
//!
//! | Name | Arguments | Effect |
//! |---|---|---|
//! | `node_offline` | `node` | the node is away: 595 for its paths, its tasks are lost, its guests stop |
//! | `quorum_lost` | | reads go on, writes are 500 |
//! | `storage_full` | `storage` | allocations and backups fail |
//! | `task_hang` | | the task that the request starts never ends by itself |
//! | `task_fail` | `text` | the task that the request starts ends with this exit status; `WARNINGS: 1` does its work nevertheless |
//!
//! Edits by a person at the console, `POST /edit` at the control port with `edit` and:
//!
//! | `edit` | Arguments |
//! |---|---|
//! | `guest_config` | `vmid`, `values`, `delete` (a list of keys) |
//! | `guest_power` | `vmid`, `on`; `task`: by a task, as a person in the vendor's pages does, else as the guest does by itself |
//! | `guest_lock` | `vmid`, `lock` (null unlocks) |
//! | `guest_unresponsive` | `vmid`, `unresponsive`: it ignores shutdowns, and its agent does not answer |
//! | `guest_delete` | `vmid` |
//! | `rule_add` | `scope` (`cluster`, `nodes/NAME`, `guests/VMID`, `vnets/NAME`, `groups/NAME`), `pos`, `values` |
//! | `rule_delete` | `scope`, `pos` |
//! | `object_set` | `path` of a collection, `id`, `values` |
//! | `object_delete` | `path`, `id` |
//! | `node_power` | `node`, `on` |
//!
//! The control port also has `GET /guests/VMID` and `GET /tasks`.

mod access;
mod answer;
mod availability;
mod backup;
mod ceph;
mod check;
mod cluster;
mod console;
mod datacenter;
mod device;
mod facts;
mod faults;
mod firewall;
mod formats;
mod guests;
mod network;
mod nodes;
mod pools;
mod privileges;
mod property;
mod replication;
mod sdn;
mod seed;
mod setup;
mod storage;
mod store;
mod tasks;
#[cfg(test)]
mod tests;
mod users;
mod wire;

pub use device::Proxmox;
pub use setup::{AUDITOR_TOKEN, ROOT_TOKEN, Setup};
