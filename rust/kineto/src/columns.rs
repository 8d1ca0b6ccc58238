//! What is kept of the events of one file, as they come.

use rustc_hash::FxHashMap;
use whywait_devices::{Memory, NONE};

use crate::names::{Meaning, Names};
use crate::numbers::{nanoseconds, signed, unsigned};
use crate::options::{Options, Paths};
use crate::scan::{Field, Fields, Sink};

/// A frame that is not the user's is dropped below this length, ns.
pub(crate) const SHORT_FRAME: i64 = 100_000;
/// Samples of memory are read without being asked for up to this many.
const FEW_SAMPLES: usize = 10_000;
/// The number of the type of device that a CPU is.
const CPU: i64 = 0;
/// Longer metadata is not of interest.
const LONGEST_METADATA: usize = 1 << 20;

/// What kind of span of the host: of two that are equal, the earlier kind is around the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    /// A Python frame.
    Frame,
    /// What the user or a library marks.
    Annotation,
    /// An operator.
    Op,
    /// A call of the runtime to the device.
    Call,
    /// A call of the driver, possibly within one of the runtime.
    DriverCall,
    /// The profiler itself, or what the driver does on its own.
    Overhead,
}

/// A span of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) name: u32,
    pub(crate) thread: u32,
    /// What else is known, by category and name: see [`Columns`].
    pub(crate) detail: u32,
    pub(crate) category: Category,
}

/// What a stream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Kernel,
    Copy,
    Memset,
}

/// Work on a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) correlation: Option<u64>,
    pub(crate) external: u64,
    pub(crate) name: u32,
    /// Its stream among those of the file.
    pub(crate) stream: u32,
    /// What the file says of its communication, in `described`.
    pub(crate) described: u32,
    pub(crate) task: Task,
}

/// What the file says of a communication operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described {
    pub(crate) operation: u32,
    pub(crate) group: u32,
    pub(crate) description: u32,
    pub(crate) ranks: u32,
    pub(crate) element: u32,
    pub(crate) size: Option<u64>,
    pub(crate) rank: Option<u64>,
    pub(crate) source: Option<u64>,
    pub(crate) destination: Option<u64>,
    pub(crate) elements_in: Option<u64>,
    pub(crate) elements_out: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) comms: Option<u64>,
}

impl Described {
    /// What is said of it, completed by what another place says of the same operation.
    pub(crate) fn or(self, other: Self) -> Self {
        let name = |a: u32, b: u32| if a == NONE { b } else { a };
        Self {
            operation: name(self.operation, other.operation),
            group: name(self.group, other.group),
            description: name(self.description, other.description),
            ranks: name(self.ranks, other.ranks),
            element: name(self.element, other.element),
            size: self.size.or(other.size),
            rank: self.rank.or(other.rank),
            source: self.source.or(other.source),
            destination: self.destination.or(other.destination),
            elements_in: self.elements_in.or(other.elements_in),
            elements_out: self.elements_out.or(other.elements_out),
            sequence: self.sequence.or(other.sequence),
            comms: self.comms.or(other.comms),
        }
    }
}

/// A communication call that the host describes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) thread: u32,
    pub(crate) begin: i64,
    pub(crate) external: u64,
    pub(crate) described: Described,
}

/// What a synchronization waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sync {
    pub(crate) correlation: u64,
    pub(crate) stream: Option<(i64, i64)>,
    pub(crate) awaited_stream: Option<(i64, i64)>,
    /// The call that recorded the event.
    pub(crate) recorded_by: Option<u64>,
}

/// The forward operation that an operation of the backward pass belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    pub(crate) number: i64,
    pub(crate) forward_thread: i64,
}

/// Arguments of a call of `c10d`, or of an operation of a library for CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) inputs: u32,
    pub(crate) shapes: u32,
    pub(crate) types: u32,
}

/// An operating-system thread, or a stream.
#[derive(Debug, Clone)]
pub(crate) struct ThreadId {
    pub(crate) process: i64,
    pub(crate) thread: i64,
    /// How the system names it.
    pub(crate) name: u32,
}

/// What was left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Events without a readable time.
    pub(crate) no_time: u64,
    /// Lengths that are negative or no number.
    pub(crate) odd_durations: u64,
    /// Numbers that do not fit.
    pub(crate) odd_numbers: u64,
}

/// What is kept of one file. Times are relative to its base time.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    paths: Paths,
    pub(crate) names: Names,
    pub(crate) spans: Vec<Span>,
    pub(crate) works: Vec<Work>,
    /// Details of calls.
    pub(crate) correlations: Vec<u64>,
    /// Details of operators.
    pub(crate) sequences: Vec<Sequence>,
    /// Details of what issues operations for CPUs, and of these.
    pub(crate) arguments: Vec<Arguments>,
    /// Numbers of operators, and the shapes of their inputs.
    pub(crate) dimensions: Vec<(u64, u32)>,
    /// Details of communication calls.
    pub(crate) records: Vec<Record>,
    pub(crate) described: Vec<Described>,
    pub(crate) syncs: Vec<Sync>,
    pub(crate) memory: Vec<Memory>,
    /// How many samples of memory there are at most.
    most_memory: usize,
    /// Number of samples of memory that are more than that.
    pub(crate) further_memory: u64,
    pub(crate) threads: Vec<ThreadId>,
    /// Device and number of each stream.
    pub(crate) streams: Vec<(i64, i64)>,
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
    /// When the profiler began and ended.
    pub(crate) began: Option<i64>,
    pub(crate) ended: Option<i64>,
    pub(crate) counts: Counts,
    by_thread: FxHashMap<(i64, i64), u32>,
    by_stream: FxHashMap<(i64, i64), u32>,
    last_thread: u32,
}

impl Columns {
    pub(crate) fn new(options: &Options) -> Self {
        let most_memory = if options.memory { usize::MAX } else { FEW_SAMPLES };
        Self { paths: options.paths, last_thread: NONE, most_memory, ..Self::default() }
    }

    /// The number of a process, thread, device or stream; some files write text.
    fn ident(&mut self, event: &Fields<'_>, field: Field) -> i64 {
        let Some(token) = event.get(field) else { return -1 };
        if let Some(number) = signed(token) {
            return number;
        }
        let text = event.text(field).unwrap_or_default();
        let number = text.strip_prefix(b"stream ").and_then(signed);
        number.unwrap_or_else(|| i64::MIN + i64::from(self.names.id(text)))
    }

    fn thread(&mut self, event: &Fields<'_>) -> u32 {
        let key = (self.ident(event, Field::Process), self.ident(event, Field::Thread));
        if let Some(last) = self.threads.get(self.last_thread as usize)
            && (last.process, last.thread) == key
        {
            return self.last_thread;
        }
        let next = self.threads.len() as u32;
        let thread = *self.by_thread.entry(key).or_insert(next);
        if thread == next {
            self.threads.push(ThreadId { process: key.0, thread: key.1, name: NONE });
        }
        self.last_thread = thread;
        thread
    }

    fn stream(&mut self, key: (i64, i64)) -> u32 {
        let next = self.streams.len() as u32;
        let stream = *self.by_stream.entry(key).or_insert(next);
        if stream == next {
            self.streams.push(key);
        }
        stream
    }

    fn name(&mut self, event: &Fields<'_>, field: Field) -> u32 {
        event.text(field).map_or(NONE, |text| self.names.id(text))
    }

    fn number(&mut self, event: &Fields<'_>, field: Field) -> Option<u64> {
        let token = event.get(field)?;
        let number = unsigned(token);
        self.counts.odd_numbers += u64::from(number.is_none() && token != b"-1");
        number
    }

    fn described(&mut self, event: &Fields<'_>) -> Option<Described> {
        event.get(Field::Collective)?;
        let plain = |field| event.get(field).and_then(unsigned);
        Some(Described {
            operation: self.name(event, Field::Collective),
            group: self.name(event, Field::GroupName),
            description: self.name(event, Field::GroupDescription),
            ranks: self.name(event, Field::GroupRanks),
            element: self.name(event, Field::ElementType),
            size: plain(Field::GroupSize),
            rank: plain(Field::Rank),
            source: plain(Field::Source),
            destination: plain(Field::Destination),
            elements_in: plain(Field::ElementsIn),
            elements_out: plain(Field::ElementsOut),
            sequence: plain(Field::Sequence),
            comms: plain(Field::Comms),
        })
    }

    /// Begin and end of a span.
    fn times(&mut self, event: &Fields<'_>) -> Option<(i64, i64)> {
        let Some(begin) = event.get(Field::Time).and_then(nanoseconds) else {
            self.counts.no_time += 1;
            return None;
        };
        let duration = event.get(Field::Duration).and_then(nanoseconds).filter(|duration| *duration >= 0);
        self.counts.odd_durations += u64::from(duration.is_none());
        Some((begin, begin.saturating_add(duration.unwrap_or(0))))
    }

    fn host(&mut self, event: &Fields<'_>, category: Category) {
        let Some((begin, end)) = self.times(event) else { return };
        let name = self.name(event, Field::Name);
        let meaning = self.names.meaning(name);
        if category == Category::Frame && self.is_dropped(meaning, end - begin) {
            return;
        }
        let thread = self.thread(event);
        if category == Category::Op && event.get(Field::Dimensions).is_some() {
            let shapes = self.name(event, Field::Dimensions);
            let external = event.get(Field::External).and_then(unsigned).filter(|external| *external > 0);
            self.dimensions.extend(external.map(|external| (external, shapes)));
        }
        let detail = match category {
            Category::Call | Category::DriverCall => {
                let correlation = self.number(event, Field::Correlation).filter(|correlation| *correlation > 0);
                correlation.map_or(NONE, |correlation| push(&mut self.correlations, correlation))
            }
            Category::Frame | Category::Overhead => NONE,
            _ => match meaning {
                Meaning::Communication => match self.described(event) {
                    Some(described) => {
                        let external = event.get(Field::External).and_then(unsigned).unwrap_or(0);
                        push(&mut self.records, Record { thread, begin, external, described })
                    }
                    None => NONE,
                },
                Meaning::Issue | Meaning::HostOperation => {
                    let arguments = Arguments {
                        inputs: self.name(event, Field::Inputs),
                        shapes: self.name(event, Field::Dimensions),
                        types: self.name(event, Field::Types),
                    };
                    push(&mut self.arguments, arguments)
                }
                _ => match event.get(Field::Backward).and_then(signed).filter(|number| *number >= 0) {
                    Some(number) => {
                        let forward_thread = event.get(Field::ForwardThread).and_then(signed).unwrap_or(0);
                        push(&mut self.sequences, Sequence { number, forward_thread })
                    }
                    None => NONE,
                },
            },
        };
        self.spans.push(Span { begin, end, name, thread, detail, category });
    }

    /// Whether a frame can never be on a call path that is kept.
    fn is_dropped(&self, meaning: Meaning, length: i64) -> bool {
        match self.paths {
            Paths::Op => true,
            Paths::Module => !matches!(meaning, Meaning::Module | Meaning::OwnFrame) && length < SHORT_FRAME,
            Paths::Python | Paths::All => false,
        }
    }

    fn work(&mut self, event: &Fields<'_>, task: Task) {
        let Some((begin, end)) = self.times(event) else { return };
        let device = if event.get(Field::Device).is_some() { Field::Device } else { Field::Process };
        let stream = if event.get(Field::Stream).is_some() { Field::Stream } else { Field::Thread };
        let key = (self.ident(event, device), self.ident(event, stream));
        let described = if task == Task::Kernel { self.described(event) } else { None };
        let work = Work {
            begin,
            end,
            correlation: self.number(event, Field::Correlation).filter(|correlation| *correlation > 0),
            external: event.get(Field::External).and_then(unsigned).unwrap_or(0),
            name: self.name(event, Field::Name),
            stream: self.stream(key),
            described: described.map_or(NONE, |described| push(&mut self.described, described)),
            task,
        };
        self.works.push(work);
    }

    fn sync(&mut self, event: &Fields<'_>) {
        let Some(correlation) = event.get(Field::Correlation).and_then(unsigned) else { return };
        let device = self.ident(event, if event.get(Field::Device).is_some() { Field::Device } else { Field::Process });
        let stream =
            |field| event.get(field).and_then(signed).filter(|stream| *stream >= 0).map(|stream| (device, stream));
        self.syncs.push(Sync {
            correlation,
            stream: stream(Field::Stream),
            awaited_stream: stream(Field::AwaitedStream),
            recorded_by: event.get(Field::AwaitedEvent).and_then(unsigned),
        });
    }

    fn memory(&mut self, event: &Fields<'_>) {
        let number = |field| event.get(field).and_then(signed);
        let (Some(time), Some(allocated)) = (event.get(Field::Time).and_then(nanoseconds), number(Field::Allocated))
        else {
            return;
        };
        if self.memory.len() >= self.most_memory {
            self.further_memory += 1;
            return;
        }
        let device = number(Field::DeviceId).filter(|_| number(Field::DeviceType) != Some(CPU));
        let amount = |number: i64| u64::try_from(number).unwrap_or(0);
        let (allocated, reserved) = (amount(allocated), number(Field::Reserved).map_or(0, amount));
        self.memory.push(Memory { time, device, allocated, reserved });
    }

    /// A span, by its category.
    fn span(&mut self, event: &Fields<'_>) {
        match event.text(Field::Category).unwrap_or_default() {
            b"cpu_op" | b"Operator" => self.host(event, Category::Op),
            b"user_annotation" => self.host(event, Category::Annotation),
            b"python_function" => self.host(event, Category::Frame),
            b"cuda_runtime"
            | b"Runtime"
            | b"hip_runtime"
            | b"xpu_runtime"
            | b"mtia_runtime"
            | b"privateuse1_runtime" => {
                self.host(event, Category::Call);
            }
            b"cuda_driver" | b"hip_driver" | b"xpu_driver" | b"privateuse1_driver" => {
                self.host(event, Category::DriverCall);
            }
            b"kernel" | b"Kernel" => self.work(event, Task::Kernel),
            b"gpu_memcpy" | b"Memcpy" => self.work(event, Task::Copy),
            b"gpu_memset" | b"Memset" => self.work(event, Task::Memset),
            b"cuda_sync" => self.sync(event),
            b"overhead" => self.host(event, Category::Overhead),
            b"Trace" => {
                if let Some(begin) = event.get(Field::Time).and_then(nanoseconds) {
                    self.began = Some(self.began.map_or(begin, |began| began.min(begin)));
                }
            }
            _ => {}
        }
    }
}

fn push<T>(to: &mut Vec<T>, item: T) -> u32 {
    to.push(item);
    (to.len() - 1) as u32
}

impl Sink for Columns {
    fn event(&mut self, event: &Fields<'_>) {
        match event.text(Field::Phase) {
            Some(b"X") => self.span(event),
            Some(b"M") if event.text(Field::Name) == Some(b"thread_name") => {
                let name = self.name(event, Field::Called);
                let thread = self.thread(event);
                if name != NONE {
                    self.threads[thread as usize].name = name;
                }
            }
            Some(b"i" | b"I") if event.text(Field::Name) == Some(b"[memory]") => self.memory(event),
            Some(b"i" | b"I") if event.text(Field::Name) == Some(b"Record Window End") => {
                self.ended = event.get(Field::Time).and_then(nanoseconds);
            }
            _ => {}
        }
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) {
        if value.len() <= LONGEST_METADATA {
            self.metadata.push((String::from_utf8_lossy(key).into_owned(), value.to_vec()));
        }
    }
}
