//! How much of a channel is taken: numbers that the table of bounds in ARCHITECTURE.md repeats.

use std::time::Duration;

/// Channels of a process that are open, or that a watch keeps.
pub const CHANNELS_MAX: usize = 1_024;
/// The same of an organization.
pub const CHANNELS_PER_ORGANIZATION_MAX: usize = 128;
/// The same of a controller.
pub const CHANNELS_PER_CONTROLLER_MAX: usize = 32;
/// Channels that are being opened at the same time.
pub(super) const OPENINGS_MAX: usize = 32;
/// The same of an organization.
pub(super) const OPENINGS_PER_ORGANIZATION_MAX: usize = 8;
/// Time for the opening of a channel as a whole: its login, the list of `each` and all connections. The wait for a turn before
/// it has the same time of its own, and so has each request of a channel that is open.
pub(super) const OPENING_MAX: Duration = Duration::from_secs(30);

/// Bytes of one message.
pub(super) const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Bytes of an answer of a watch, and of the list of `each`.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of an answer that does not open the channel; what is beyond is not looked at.
pub(super) const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// Values of a message.
pub(super) const MESSAGE_NODES_MAX: usize = 20_000;
/// How deep a message may be nested.
pub(super) const MESSAGE_DEPTH_MAX: usize = 32;

/// Messages that may come at once; more are dropped unread.
pub(super) const MESSAGES_BURST: u32 = 200;
/// Messages of a second behind them.
pub(super) const MESSAGES_PER_SECOND: u32 = 50;
/// Bytes of a second. A controller that sends more is read no faster.
pub(super) const BYTES_PER_SECOND: usize = 1 << 20;
/// Parts of messages of a second, and frames of the protocol's own: with one more the connection ends.
pub(super) const PARTS_PER_SECOND: usize = 200;
/// Whole messages of a second, read or dropped: with one more the connection ends.
pub(super) const FRAMES_PER_SECOND: usize = 2_000;
/// Least time between two gaps that dropped messages make.
pub(super) const GAP_EVERY: Duration = Duration::from_secs(30);

/// Things of a channel that are remembered for `differs`, and elements for a watch.
pub(super) const KEYS_MAX: usize = 4_096;
/// Objects of `each` that have a connection.
pub(super) const EACH_MAX: usize = 16;
/// Time after which the objects of `each` are listed again.
pub(super) const EACH_AGAIN: Duration = Duration::from_mins(1);
/// Answers of a watch in a row that may be lacking.
pub(super) const FAILURES_MAX: u32 = 3;
/// What was told and not taken yet; a channel that has told more waits.
pub(super) const TOLD_MAX: usize = 64;
/// Bytes of a site's name or id in a message; a longer one names none.
pub(super) const SITE_BYTES_MAX: usize = 256;
/// Bytes of a request to a hook.
pub const HOOK_BODY_BYTES_MAX: usize = 64 << 10;
