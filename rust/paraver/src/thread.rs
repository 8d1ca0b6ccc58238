//! What a thread did: calls within calls, from events that open and close what they stand for.

use crate::calls;
use crate::labels::Labels;
use crate::openmp::{self, ASKS, GIVES, HAS, LOCK_ADDRESS, OUTLINED};
use crate::regions::{CALLER, CALLER_LINE, FUNCTION, LEVELS, Region, Regions, UNKNOWN_CALLERS};
use crate::scan::Records;
use crate::states::{self, Gap};

/// Stands for nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// A call, function or other region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Number of visits around it.
    pub(crate) depth: u32,
    pub(crate) region: u32,
    /// The type of events that opened it.
    pub(crate) kind: u32,
    /// The value of that event; 0 if the region is not whole.
    pub(crate) value: i32,
    /// What is known of a collective call, in `collectives`.
    pub(crate) collective: u32,
}

/// What is recorded with a collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collective {
    pub(crate) visit: u32,
    /// The number of its communicator, if recorded.
    pub(crate) communicator: Option<i64>,
    pub(crate) sent: i64,
    pub(crate) received: i64,
    pub(crate) is_root: bool,
}

/// The time in which a thread has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) address: i64,
    /// The visit in which the thread asks for it, and the one in which it gives it back.
    pub(crate) acquire: u32,
    pub(crate) release: Option<u32>,
}

/// What a counter counted since its last sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) time: i64,
    pub(crate) kind: u32,
    pub(crate) value: i64,
}

/// What is odd in the events of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Calls that began before the trace, or end after it.
    pub(crate) open_at_start: u64,
    pub(crate) open_at_end: u64,
    /// Ends of what did not begin.
    pub(crate) ends: u64,
    /// Regions that end after the region around them.
    pub(crate) crossings: u64,
    /// Values of counters that cannot be.
    pub(crate) samples: u64,
}

/// A thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// In order of begin, what is around others first.
    pub(crate) visits: Vec<Visit>,
    /// The visits that are calls of MPI.
    pub(crate) calls: Vec<u32>,
    pub(crate) collectives: Vec<Collective>,
    pub(crate) holdings: Vec<Holding>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) regions: Vec<Region>,
    /// The region of the thread's parts in teams.
    pub(crate) part_region: u32,
    /// Levels of callers that occur.
    pub(crate) levels: usize,
    pub(crate) odd: Odd,
}

/// How the events of a thread are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) labels: &'a Labels,
    /// Further types of events that are regions.
    pub(crate) types: &'a [u32],
    /// When the run ends.
    pub(crate) end: i64,
    /// Whether it is the first thread of its task.
    pub(crate) is_first: bool,
}

/// What opens regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Track {
    Function,
    Parallel,
    Outlined,
    Lock,
    OpenMp,
    Mpi,
    Other,
}

impl Track {
    fn of(kind: u32, types: &[u32]) -> Option<Self> {
        match kind {
            FUNCTION => Some(Self::Function),
            _ if calls::is_mpi(kind) => Some(Self::Mpi),
            OUTLINED => Some(Self::Outlined),
            _ if openmp::is_parallel(kind) => Some(Self::Parallel),
            _ if openmp::is_lock(kind) => Some(Self::Lock),
            _ if openmp::role(kind).is_some() => Some(Self::OpenMp),
            _ if types.contains(&kind) => Some(Self::Other),
            _ => None,
        }
    }

    /// What begins first of that which begins in one instant.
    fn order(self) -> u8 {
        match self {
            Self::Function => 0,
            Self::Parallel => 1,
            Self::Outlined => 2,
            Self::Other => 3,
            Self::Lock | Self::OpenMp => 4,
            Self::Mpi => 5,
        }
    }

    /// Whether a region of a type can be in another one of it.
    fn nests(self) -> bool {
        matches!(self, Self::Function | Self::Outlined)
    }
}

/// Whether a type counts something.
pub(crate) const fn is_counter(kind: u32) -> bool {
    matches!(kind, 42_000_000..=42_999_999 | 44_000_000..=44_999_999 | 46_000_000..=46_999_999)
}

/// More than this is no count of anything.
const MOST_COUNTED: i64 = 1 << 53;

/// A region that begins in the current instant.
#[derive(Debug, Clone, Copy)]
struct Begin {
    track: Track,
    kind: u32,
    value: i64,
    has_ended: bool,
}

/// What is recorded with the call that begins in the current instant.
#[derive(Debug, Default)]
struct Attributes {
    communicator: Option<i64>,
    sent: i64,
    received: i64,
    is_root: bool,
    /// The address of a lock.
    lock: Option<i64>,
    /// From the nearest to the outermost.
    callers: Vec<i64>,
    place: i64,
}

impl Attributes {
    fn clear(&mut self) {
        let callers = std::mem::take(&mut self.callers);
        *self = Self { callers, ..Self::default() };
        self.callers.clear();
    }

    fn note(&mut self, kind: u32, value: i64) {
        const LAST: u32 = CALLER + LEVELS as u32 - 1;
        match kind {
            50_100_001 => self.sent = value,
            50_100_002 => self.received = value,
            50_100_003 => self.is_root = value != 0,
            50_100_004 => self.communicator = Some(value),
            LOCK_ADDRESS if value != 0 => self.lock = Some(value),
            CALLER_LINE => self.place = value,
            CALLER..=LAST => {
                let level = (kind - CALLER) as usize;
                if self.callers.len() <= level {
                    self.callers.resize(level + 1, 0);
                }
                self.callers[level] = value;
            }
            _ => {}
        }
    }
}

/// An open region.
#[derive(Debug, Clone, Copy)]
struct Open {
    visit: u32,
    kind: u32,
    /// Callers right around it, which end with it.
    callers: u32,
}

struct Builder<'a> {
    context: Context<'a>,
    regions: Regions<'a>,
    thread: Thread,
    open: Vec<Open>,
    /// Locks that the thread has: their types, and where they are in `holdings`.
    held: Vec<(u32, usize)>,
    /// Types that have begun, and how many regions of each ended with those around them.
    known: Vec<(u32, u64)>,
    attributes: Attributes,
}

impl Thread {
    /// Reads the records of a thread.
    pub(crate) fn new(mut records: Records, context: Context<'_>) -> Self {
        sort(&mut records);
        let mut builder = Builder {
            context,
            regions: Regions::new(context.labels),
            thread: Self::default(),
            open: Vec::new(),
            held: Vec::new(),
            known: Vec::new(),
            attributes: Attributes::default(),
        };
        let has_records = !records.lines.is_empty() || !records.states.is_empty();
        if context.is_first && has_records {
            let region = builder.regions.program();
            builder.open(0, region, 0, 0);
        }
        builder.events(&records);
        let Builder { mut regions, mut thread, .. } = builder.end();
        thread.part_region = regions.of(openmp::PART, 0, 0);
        thread.gaps = states::gaps(records.states, context.end, |state| regions.state(state));
        thread.regions = regions.into_list();
        thread.visits.shrink_to_fit();
        thread.gaps.shrink_to_fit();
        thread.samples.shrink_to_fit();
        thread
    }

    /// Finds the calls among the visits, which are final.
    pub(crate) fn find_calls(&mut self) {
        let visits = (0..).zip(&self.visits);
        self.calls = visits.filter(|(_, visit)| calls::is_mpi(visit.kind)).map(|(at, _)| at).collect();
    }
}

/// Brings lines in order of time.
fn sort(records: &mut Records) {
    if records.lines.is_sorted_by_key(|line| line.0) {
        return;
    }
    let mut order: Vec<usize> = (0..records.lines.len()).collect();
    order.sort_by_key(|line| records.lines[*line].0);
    let mut sorted = Records::default();
    for line in order {
        for (kind, value) in records.pairs(line) {
            sorted.types.push(kind);
            sorted.values.push(value);
        }
        sorted.lines.push((records.lines[line].0, sorted.types.len()));
    }
    sorted.states = std::mem::take(&mut records.states);
    *records = sorted;
}

impl Builder<'_> {
    fn events(&mut self, records: &Records) {
        let mut begins: Vec<Begin> = Vec::new();
        let mut line = 0;
        while line < records.lines.len() {
            let time = records.lines[line].0;
            begins.clear();
            self.attributes.clear();
            while records.lines.get(line).is_some_and(|next| next.0 == time) {
                for (kind, value) in records.pairs(line) {
                    match Track::of(kind, self.context.types) {
                        Some(track) if value != 0 => begins.push(Begin { track, kind, value, has_ended: false }),
                        Some(track) => self.zero(time, (track, kind), &mut begins),
                        None if is_counter(kind) => self.sample(Sample { time, kind, value }),
                        None => self.attributes.note(kind, value),
                    }
                }
                line += 1;
            }
            begins.sort_by_key(|begin| begin.track.order());
            for begin in &begins {
                self.begin(time, *begin);
            }
        }
    }

    fn sample(&mut self, sample: Sample) {
        if (0..=MOST_COUNTED).contains(&sample.value) {
            self.thread.samples.push(sample);
        } else {
            self.thread.odd.samples += 1;
        }
    }

    /// The end of what is open, of what begins in the same instant, or of what began before the trace.
    fn zero(&mut self, time: i64, (track, kind): (Track, u32), begins: &mut [Begin]) {
        let is_open = self.open.iter().any(|open| open.kind == kind);
        let begun = begins.iter_mut().rev().find(|begin| begin.kind == kind && !begin.has_ended);
        // Of types whose regions do not nest, what is open ends before the next begins, whatever the order of records.
        match begun.filter(|_| track.nests() || !is_open) {
            Some(begin) => return begin.has_ended = true,
            None if is_open => return self.close(time, kind),
            None => {}
        }
        match self.known.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, early)) if *early > 0 => *early -= 1,
            // A lock is not given back in a region of its own.
            Some(_) if openmp::is_lock(kind) => self.held.retain(|(held, _)| *held != kind),
            Some(_) => self.thread.odd.ends += 1,
            None => self.began_before(time, kind),
        }
    }

    fn begin(&mut self, time: i64, begin: Begin) {
        let Begin { track, kind, value, has_ended } = begin;
        let before = self.open.iter().rev().find(|open| open.kind == kind).map(|open| open.visit);
        if before.is_some() && !track.nests() {
            self.close(time, kind);
        }
        self.know(kind);
        if track == Track::Lock && value == HAS {
            // Having it is the program's own work.
            let asks = before.filter(|visit| i64::from(self.thread.visits[*visit as usize].value) == ASKS);
            let address = self.attributes.lock.unwrap_or(-i64::from(kind));
            let holding = asks.map(|acquire| Holding { address, acquire, release: None });
            self.thread.holdings.extend(holding);
            self.held.extend(holding.map(|_| (kind, self.thread.holdings.len() - 1)));
            return;
        }
        let mut callers = 0;
        let attributes = std::mem::take(&mut self.attributes);
        if track == Track::Mpi {
            for caller in attributes.callers.iter().rev().filter(|caller| **caller > UNKNOWN_CALLERS) {
                let region = self.regions.caller(*caller);
                let is_on = |open: &Open| self.thread.visits[open.visit as usize].region == region;
                if !self.open.iter().any(is_on) {
                    self.open(time, region, CALLER, 0);
                    callers += 1;
                }
            }
            self.thread.levels = self.thread.levels.max(attributes.callers.len());
        }
        let region = self.regions.of(kind, value, if track == Track::Mpi { attributes.place } else { 0 });
        if track == Track::Function && self.is_program(region) {
            // It is open already.
            self.open.extend((!has_ended).then_some(Open { visit: 0, kind, callers: 0 }));
            self.attributes = attributes;
            return;
        }
        let visit = self.open(time, region, kind, callers);
        self.thread.visits[visit as usize].value = i32::try_from(value).unwrap_or(0);
        if track == Track::Mpi && calls::operation(value).is_some() {
            let Attributes { communicator, sent, received, is_root, .. } = attributes;
            self.thread.visits[visit as usize].collective = self.thread.collectives.len() as u32;
            self.thread.collectives.push(Collective { visit, communicator, sent, received, is_root });
        }
        self.attributes = attributes;
        if track == Track::Lock && value == GIVES {
            // Locks are given back in any order, but each type has one that is asked for at a time.
            if let Some(at) = self.held.iter().rposition(|(held, _)| *held == kind) {
                let (_, holding) = self.held.remove(at);
                self.thread.holdings[holding].release = Some(visit);
            }
        }
        if has_ended {
            self.close(time, kind);
        }
    }

    /// Whether a region is what surrounds all that the task does, and nothing else is open.
    fn is_program(&self, region: u32) -> bool {
        let [open] = self.open[..] else { return false };
        self.context.is_first && self.thread.visits[open.visit as usize].region == region
    }

    fn know(&mut self, kind: u32) {
        if !self.known.iter().any(|(known, _)| *known == kind) {
            self.known.push((kind, 0));
        }
    }

    fn open(&mut self, begin: i64, region: u32, kind: u32, callers: u32) -> u32 {
        let visit = self.thread.visits.len() as u32;
        let depth = self.open.last().map_or(0, |around| self.thread.visits[around.visit as usize].depth + 1);
        self.thread.visits.push(Visit { begin, end: begin, depth, region, kind, value: 0, collective: NONE });
        self.open.push(Open { visit, kind, callers });
        visit
    }

    /// Ends the innermost region of a type, with all that is in it.
    fn close(&mut self, time: i64, kind: u32) {
        while let Some(open) = self.open.pop() {
            self.thread.visits[open.visit as usize].end = time;
            if open.kind == kind {
                for _ in 0..open.callers {
                    if let Some(caller) = self.open.pop() {
                        self.thread.visits[caller.visit as usize].end = time;
                    }
                }
                return;
            }
            if open.kind != CALLER {
                self.thread.odd.crossings += 1;
                if let Some((_, early)) = self.known.iter_mut().find(|(known, _)| *known == open.kind) {
                    *early += 1;
                }
            }
        }
    }

    /// A region that is open where the trace begins, around all that has ended since.
    fn began_before(&mut self, time: i64, kind: u32) {
        self.know(kind);
        self.thread.odd.open_at_start += 1;
        let region = self.regions.cut(kind);
        let at = usize::from(self.context.is_first);
        let is_inside = |open: &&Open| open.visit as usize >= at;
        let inside = self.open.iter().find(is_inside).map(|open| self.thread.visits[open.visit as usize].begin);
        let end = inside.map_or(time, |begin| begin.min(time));
        let begin = self.thread.visits.get(at).map_or(end, |first| first.begin.min(end)).min(0);
        let depth = at as u32;
        for visit in self.thread.visits[at..].iter_mut().take_while(|visit| visit.end <= end && visit.begin < end) {
            visit.depth += 1;
        }
        let visit = Visit { begin, end, depth, region, kind, value: 0, collective: NONE };
        self.thread.visits.insert(at, visit);
        for open in self.open.iter_mut().filter(|open| open.visit as usize >= at) {
            open.visit += 1;
        }
        for collective in &mut self.thread.collectives {
            collective.visit += 1;
        }
        for holding in &mut self.thread.holdings {
            holding.acquire += 1;
            holding.release = holding.release.map(|visit| visit + 1);
        }
    }

    /// Ends what is open where the trace ends.
    fn end(mut self) -> Self {
        let last = self.thread.visits.iter().map(|visit| visit.end.max(visit.begin)).max().unwrap_or(0);
        let end = self.context.end.max(last);
        while let Some(open) = self.open.pop() {
            let visit = &mut self.thread.visits[open.visit as usize];
            visit.end = end;
            if open.kind != CALLER && open.kind != 0 {
                // Nobody knows what it would have done.
                visit.value = 0;
                self.thread.odd.open_at_end += 1;
            }
        }
        self
    }
}
