//! What leaves Heddle for people and other systems: notifications and webhooks.

mod glossary;
pub mod notifications;
pub mod webhooks;
