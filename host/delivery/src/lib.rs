//! What leaves Heddle for people and other systems: notifications and webhooks.

pub mod notifications;
pub mod webhooks;
