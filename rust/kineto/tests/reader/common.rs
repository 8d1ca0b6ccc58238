//! Reads traces back from the records that they become.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whywait_devices::DeviceRecording;
use whywait_kineto::{Options, open};
use whywait_otf2::enums::{CollectiveOp, LocationType};
use whywait_otf2::{Attributes, Event, EventSink, Recording};

#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
/// The folder of a case; `None`, said aloud, where the shared cases are absent. Some are in the repository.
pub(crate) fn cases(name: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kineto");
    let shared = std::env::var_os("WHYWAIT_SHARED").map(|shared| PathBuf::from(shared).join("kineto"));
    let mut places = [Some(own), shared].into_iter().flatten().map(|place| place.join(name));
    let found = places.find(|place| place.is_dir());
    if found.is_none() {
        eprintln!("skipped: WHYWAIT_SHARED does not name a directory with kineto/{name}");
    }
    found
}

/// A member of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) rank: u32,
    pub(crate) begin: i64,
    /// When it began to wait: later than it began if it was issued before.
    pub(crate) waits_from: i64,
    pub(crate) end: i64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) kind: String,
    pub(crate) members: Vec<Member>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) sender: u32,
    pub(crate) receiver: u32,
    pub(crate) send: (i64, i64),
    pub(crate) receive: (i64, i64),
}

/// What is recorded on all locations.
pub(crate) struct Trace {
    pub(crate) recording: DeviceRecording,
    pub(crate) instances: Vec<Instance>,
    pub(crate) messages: Vec<Message>,
}

/// A member's part: communicator, operation, begin, where it began to wait, end, bytes sent and received.
type Part = (u32, CollectiveOp, i64, i64, i64, u64, u64);

/// Events of one location: enters and leaves are checked to be in order and complete.
#[derive(Default)]
struct Reader {
    is_stream: bool,
    now: i64,
    open: Vec<(i64, u32)>,
    count: u64,
    begins: Vec<i64>,
    /// Begins of operations that are not awaited yet, by request.
    requests: BTreeMap<u64, i64>,
    collectives: Vec<Part>,
    /// Tag, and whether it is a send; begin of the open region.
    messages: Vec<(u32, bool, i64, i64)>,
    open_sends: Vec<(i64, usize)>,
}

impl EventSink for Reader {
    fn enter(&mut self, time: i64, region: u32) {
        assert!(time >= self.now, "time goes back");
        self.now = time;
        self.open.push((time, region));
        self.count += 1;
    }

    fn leave(&mut self, time: i64, region: u32) {
        assert!(time >= self.now, "time goes back");
        self.now = time;
        let at = self.open.iter().rposition(|(_, open)| *open == region).expect("a region is left that was entered");
        assert!(self.is_stream || at + 1 == self.open.len(), "regions of a thread are nested");
        let (begin, _) = self.open.remove(at);
        for (of, message) in std::mem::take(&mut self.open_sends) {
            if of == begin {
                self.messages[message].3 = time;
            } else {
                self.open_sends.push((of, message));
            }
        }
        self.count += 1;
    }

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        assert!(time >= self.now, "time goes back");
        self.count += 1;
        let begin = self.open.last().map_or(time, |(begin, _)| *begin);
        match *record {
            Event::MpiCollectiveBegin {} => self.begins.push(time),
            Event::MpiCollectiveEnd { collective_op, communicator, size_sent, size_received, .. } => {
                let begin = self.begins.pop().expect("an operation ends that has begun");
                self.collectives.push((communicator, collective_op, begin, begin, time, size_sent, size_received));
            }
            Event::NonBlockingCollectiveRequest { request_id } => {
                assert!(self.requests.insert(request_id, time).is_none(), "a request has a number of its own");
            }
            Event::NonBlockingCollectiveComplete {
                collective_op,
                communicator,
                size_sent,
                size_received,
                request_id,
                ..
            } => {
                let issued = self.requests.remove(&request_id).expect("what completes was requested");
                self.collectives.push((communicator, collective_op, issued, begin, time, size_sent, size_received));
            }
            Event::MpiSend { msg_tag, .. } => {
                self.open_sends.push((begin, self.messages.len()));
                self.messages.push((msg_tag, true, time, time));
            }
            Event::MpiRecv { msg_tag, .. } => self.messages.push((msg_tag, false, begin, time)),
            _ => {}
        }
    }
}

impl Trace {
    /// Reads traces, and numbers operations as an analysis does: by begin, on each communicator of each process.
    pub(crate) fn read(paths: &[PathBuf]) -> Self {
        Self::of(open(paths, &Options::default()).expect("the traces can be read"))
    }

    pub(crate) fn of(recording: DeviceRecording) -> Self {
        let facts = recording.facts();
        let ranks: Vec<u32> = facts.ranks.iter().map(|rank| rank.rank).collect();
        let mut members: BTreeMap<(u32, usize), Vec<(u32, Part)>> = BTreeMap::new();
        let mut messages: BTreeMap<u32, Message> = BTreeMap::new();
        let mut by_process: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
        for location in &recording.definitions().locations {
            let is_stream = location.location_type == LocationType::ACCELERATOR_STREAM;
            let mut reader = Reader { is_stream, now: i64::MIN, ..Reader::default() };
            let summary = recording.events(location.id).unwrap().read(&mut Vec::new(), &mut reader).unwrap();
            assert!(reader.open.is_empty(), "all regions are left");
            assert!(reader.requests.is_empty(), "all requests complete");
            assert_eq!((summary.events, location.number_of_events), (reader.count, reader.count), "counted");
            let process = (location.id & 0xffff_ffff) as u32;
            for (tag, is_send, begin, end) in reader.messages {
                let message = messages.entry(tag).or_default();
                if is_send {
                    (message.sender, message.send) = (ranks[process as usize], (begin, end));
                } else {
                    (message.receiver, message.receive) = (ranks[process as usize], (begin, end));
                }
            }
            by_process.entry(process).or_default().extend(reader.collectives);
        }
        for (process, mut collectives) in by_process {
            collectives.sort_by_key(|(comm, _, begin, ..)| (*comm, *begin));
            for of_comm in collectives.chunk_by(|a, b| a.0 == b.0) {
                for (number, collective) in of_comm.iter().enumerate() {
                    members.entry((collective.0, number)).or_default().push((process, *collective));
                }
            }
        }
        let instance = |of: Vec<(u32, Part)>| {
            let kind = of[0].1.1;
            assert!(of.iter().all(|(_, member)| member.1 == kind), "members of one operation are of one kind");
            let member = |(process, (_, _, begin, waits_from, end, sent, received)): (u32, Part)| Member {
                rank: ranks[process as usize],
                begin,
                waits_from,
                end,
                sent,
                received,
            };
            Instance { kind: kind_name(kind).to_owned(), members: of.into_iter().map(member).collect() }
        };
        let comms = &recording.definitions().comms;
        for (id, of) in &members {
            let comm = comms.iter().find(|comm| comm.id == id.0).expect("the communicator is defined");
            let group = recording.definitions().comm_group(comm.group).expect("its group is defined");
            assert_eq!(of.len(), group.members.len(), "all members take part");
        }
        let instances = members.into_values().map(instance).collect();
        Self { recording, instances, messages: messages.into_values().collect() }
    }
}

impl Trace {
    /// Names of all regions, in order of their numbers.
    pub(crate) fn regions(&self) -> Vec<&str> {
        let definitions = self.recording.definitions();
        definitions.regions.iter().map(|region| definitions.string(region.name)).collect()
    }
}

fn kind_name(operation: CollectiveOp) -> &'static str {
    match operation {
        CollectiveOp::ALLREDUCE => "all_reduce",
        CollectiveOp::ALLGATHER => "all_gather",
        CollectiveOp::REDUCE_SCATTER => "reduce_scatter",
        CollectiveOp::ALLTOALL => "all_to_all",
        CollectiveOp::BARRIER => "barrier",
        CollectiveOp::BCAST => "broadcast",
        CollectiveOp::SCATTER => "scatter",
        CollectiveOp::REDUCE => "reduce",
        CollectiveOp::GATHER => "gather",
        _ => "other",
    }
}

/// The value of a key in one object of `right.json`.
fn value<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = object.split_once(&format!("\"{key}\": "))?;
    Some(rest.split([',', '\n', '}']).next()?.trim().trim_matches('"'))
}

/// Kind, rank and length of all waits in `right.json`.
pub(crate) fn right(directory: &Path) -> Vec<(String, u32, i64)> {
    let text = std::fs::read_to_string(directory.join("right.json")).expect("right.json can be read");
    let (_, waits) = text.split_once("\"waits\": [").expect("it has waits");
    let (waits, _) = waits.split_once("\"totals\"").expect("totals follow them");
    let wait = |object: &str| {
        Some((
            value(object, "kind")?.to_owned(),
            value(object, "rank")?.parse().ok()?,
            value(object, "wait_ns")?.parse().ok()?,
        ))
    };
    let mut all: Vec<_> = waits.split('{').filter_map(wait).collect();
    all.sort();
    all
}
