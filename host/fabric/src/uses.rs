//! Which Connections, rules and schedules use an object. Their parameters are sealed, so they are opened to see it.

use futures::FutureExt as _;
use heddle_core::{ConnectionId, OrgId};
use heddle_delivery::notifications::CHANNEL;
use heddle_kernel::app::App;
use heddle_kernel::feature::Guard;
use heddle_kernel::http::error::Error;
use heddle_store::channels::ChannelId;
use heddle_store::{Tx, connections};

use super::steps;

/// The operation that sends through channels.
const NOTIFY: &str = "fabric.notify";
/// Connections of one read.
const BATCH: u32 = 500;
/// Names that an answer holds; the others are counted.
const NAMED_MAX: usize = 10;

pub(super) const GUARDS: &[(&str, Guard)] =
    &[(CHANNEL, |tx, app, org, id| require_channel_unused(tx, app, org, id.into()).boxed())];

/// Refuses to remove a channel that something sends through; the answer names what sends.
///
/// Reads every Connection of the organization that has a step of `fabric.notify`, in portions.
async fn require_channel_unused(tx: &mut Tx, app: &App, org: OrgId, channel: ChannelId) -> Result<(), Error> {
    let wanted = channel.to_string();
    let mut after: Option<ConnectionId> = None;
    let (mut named, mut others) = (Vec::new(), 0_usize);
    loop {
        let found = connections::with_operation(tx, org, NOTIFY, after, BATCH).await?;
        for row in &found {
            // Steps that can no longer be opened cannot run either.
            let Ok(steps) = steps::open(&app.keys, row.id, &row.steps, &row.secret) else { continue };
            let uses = steps.iter().any(|step| {
                step.operation_id == NOTIFY
                    && step.params.get("channel_id").and_then(|id| id.as_str()) == Some(wanted.as_str())
            });
            if uses && named.len() < NAMED_MAX {
                named.push(format!("{} '{}'", row.kind, row.name));
            } else if uses {
                others += 1;
            }
        }
        after = found.last().map(|row| row.id);
        if found.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            break;
        }
    }
    if named.is_empty() {
        return Ok(());
    }
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    Err(Error::Conflict {
        kind: "in_use",
        message: format!(
            "channel is used by {}{more}: have them use another channel first",
            named.join(", ")
        ),
    })
}
