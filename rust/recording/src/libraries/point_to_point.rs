//! MPI's messages, also in partitions.

use whywait_otf2::Event;

use super::library::{Called, Process, Records};
use super::partitions::Partitioned;
use crate::format::{Call, PEER_NULL, RequestKind, flags};
use crate::functions::Class;
use crate::model::Model;
use crate::requests::{Request, listed};
use crate::thread::Out;

/// Messages of a process.
#[derive(Debug)]
pub(crate) struct PointToPoint {
    partitioned: Partitioned,
}

impl PointToPoint {
    /// With the requests whose messages have partitions, and how many.
    pub(crate) fn new(partitioned: impl Iterator<Item = (u64, u32)>) -> Self {
        Self { partitioned: Partitioned::new(partitioned) }
    }

    #[inline]
    fn send(&mut self, out: &mut Out<'_>, call: &Call, msg_length: u64, request: Option<u64>, process: &Process<'_>) {
        let (Some(comm), Ok(receiver)) = (process.comm(call.object), u32::try_from(call.peer)) else { return };
        let (communicator, msg_tag) = (comm.id, call.tag.cast_unsigned());
        match request {
            None => out.put(call.enter, &Event::MpiSend { receiver, communicator, msg_tag, msg_length }),
            Some(request_id) if process.ignored.contains(&request_id) => {}
            Some(request_id) => {
                let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id };
                self.partitioned.begin(out, call.enter, &event, request_id);
            }
        }
    }

    /// The request of a receive, unless it is one from nobody, or from a process that was not recorded.
    #[inline]
    fn request(&mut self, out: &mut Out<'_>, call: &Call, request_id: u64, process: &Process<'_>) {
        let is_known = !process.ignored.contains(&request_id) && !process.unrecorded.contains(&call.object);
        if request_id != 0 && call.peer != PEER_NULL && is_known {
            self.partitioned.begin(out, call.leave, &Event::MpiIrecvRequest { request_id }, request_id);
        }
    }
}

#[inline]
fn receive(out: &mut Out<'_>, call: &Call, process: &Process<'_>) {
    if let (Some(comm), Ok(sender)) = (process.comm(call.object), u32::try_from(call.source)) {
        let (communicator, msg_tag, msg_length) = (comm.id, call.arrived_tag.cast_unsigned(), call.received);
        out.put(call.leave, &Event::MpiRecv { sender, communicator, msg_tag, msg_length });
    }
}

impl Records for PointToPoint {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, after } = called;
        match function.class {
            Class::Send | Class::Sendrecv => self.send(out, call, *bytes, None, process),
            Class::Isend | Class::Isendrecv if called.returned() => {
                self.send(out, call, *bytes, Some(call.id), process);
            }
            Class::Start if call.kind() == RequestKind::Send as u8 && called.returned() => {
                self.send(out, call, *bytes, Some(call.id), process);
            }
            Class::Startall => {
                for request in after.iter().flat_map(listed).filter(|request| request.kind == RequestKind::Send as u8) {
                    let Request { id, bytes, peer, tag, object, .. } = request;
                    self.send(out, &Call { peer, tag, object, ..*call }, bytes, Some(id), process);
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, after, .. } = called;
        match function.class {
            Class::Recv | Class::Sendrecv => receive(out, call, process),
            Class::Mrecv if process.model == Model::Full => receive(out, call, process),
            Class::Irecv => self.request(out, call, call.id, process),
            Class::Imrecv if process.model == Model::Full => self.request(out, call, call.id, process),
            Class::Isendrecv => self.request(out, call, call.id.wrapping_add(1), process),
            Class::Start if call.kind() == RequestKind::Receive as u8 => self.request(out, call, call.id, process),
            Class::Parrived if call.source == 0 => self.partitioned.missed(out, call),
            Class::Pready | Class::Parrived => self.partitioned.found(out, call, after),
            // A test that did not find what it asked for.
            Class::Test
                if call.flags & flags::LISTED == 0
                    && call.kind() == RequestKind::None as u8
                    && call.id != 0
                    && !process.ignored.contains(&call.id) =>
            {
                out.put(call.leave, &Event::MpiRequestTest { request_id: call.id });
            }
            _ => {}
        }
    }

    fn starts(&mut self, out: &mut Out<'_>, call: &Call, request: &Request, process: &mut Process<'_>) {
        if request.kind == RequestKind::Receive as u8 {
            self.request(out, &Call { peer: request.peer, ..*call }, request.id, process);
        }
    }

    fn completes(&mut self, out: &mut Out<'_>, time: u64, request: &Request, process: &mut Process<'_>) {
        let Request { kind, id: request_id, bytes: msg_length, .. } = *request;
        if process.ignored.contains(&request_id) {
            return;
        }
        if kind == RequestKind::Send as u8 {
            out.put(time, &Event::MpiIsendComplete { request_id });
        } else if kind == RequestKind::Cancelled as u8 {
            out.put(time, &Event::MpiRequestCancelled { request_id });
        } else if let (Some(comm), Ok(sender)) = (process.comm(request.object), u32::try_from(request.peer)) {
            let (communicator, msg_tag) = (comm.id, request.tag.cast_unsigned());
            out.put(time, &Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id });
        }
    }
}
