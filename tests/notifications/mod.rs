//! Notifications: channels to the outside, notices inside.

mod channels;
mod notices;
mod sink;
