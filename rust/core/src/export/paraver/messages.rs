//! Messages: when they are sent, posted and received, by the rules of Extrae.

use super::lines::Message;
use super::terms::Terms;
use crate::Result;
use crate::export::selection::Selection;
use crate::ids::InstanceId;
use crate::matching::messages;
use crate::trace::Trace;

/// All messages whose two ends are written, at the first process. Collective.
pub(super) fn all(trace: &Trace, terms: &Terms, selection: &Selection) -> Result<Vec<Message>> {
    let (found, _) = messages::match_all(trace, |_, shard, matches| {
        let receives = shard.receives.rows.iter().enumerate();
        let found = receives.filter_map(|(row, receive)| {
            let send = matches.send(row)?;
            let to = shard.location_of_instance(receive.instance);
            let arrived = shard.leave(receive.instance);
            let is_blocking = receive.request == receive.instance;
            let posted = if is_blocking { shard.enter(receive.instance) } else { shard.leave(receive.request) };
            let is_shown = selection.has(trace, send.location) && selection.has(trace, to);
            (is_shown && selection.overlaps(send.enter, arrived)).then_some((
                Message {
                    from: send.location,
                    to,
                    sent: (send.enter, send.enter),
                    received: (posted, arrived),
                    bytes: send.bytes,
                    tag: send.tag,
                },
                (trace.shard_of[send.location], send.instance),
            ))
        });
        found.collect::<Vec<_>>()
    })?;
    let found: Vec<(Message, (u32, InstanceId))> = found.into_iter().flatten().collect();
    let calls: Vec<(u32, InstanceId)> = found.iter().map(|(_, call)| *call).collect();
    let left = trace.exchange.ask(
        &calls,
        |(shard, _)| *shard,
        |(shard, call)| {
            let shard = &trace.shards[trace.exchange.position(*shard)];
            let sends_at_once = terms.of(shard.callpath(*call)).sends_at_once;
            if sends_at_once { shard.enter(*call) } else { shard.leave(*call) }
        },
    )?;
    let all = found.into_iter().zip(left).map(|((message, _), left)| {
        let sent = (message.sent.0, left);
        Message { sent, ..message }
    });
    trace.exchange.gatherv(all)
}
