//! What a thread did: calls within calls, from events that open and close what they stand for.

use whywait_otf2::Numbered;

use crate::calls;
use crate::labels::Labels;
use crate::openmp::{self, ASKS, GIVES, HAS, LOCK_ADDRESS, OUTLINED};
use crate::polling::{self, Polls};
use crate::pthreads::{self, CREATE, LIFE};
use crate::records::{Line, Records};
use crate::regions::{CALLER, CALLER_LINE, FUNCTION, LEVELS, Region, Regions, UNKNOWN_CALLERS};
use crate::states::{self, Gaps, Switch};
use crate::versions::Versions;

/// Stands for nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// A call, function or other region, with the callers of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Number of visits around it.
    pub(crate) depth: u32,
    /// Which: its place in [`Thread::whats`].
    pub(crate) what: u32,
}

/// What a visit is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct What {
    pub(crate) region: u32,
    /// The type of events that opened it.
    pub(crate) kind: u32,
    /// The value of that event; 0 if the region is not whole.
    pub(crate) value: i32,
    /// The address of the lock that a call of POSIX threads is for, if recorded.
    pub(crate) lock: Option<i64>,
    /// Whether it stands for further calls that found nothing.
    pub(crate) polls: bool,
    /// Regions around a call that begin and end with it, from the outermost.
    pub(crate) callers: Vec<u32>,
}

impl What {
    /// Whether it is a call that makes a thread.
    pub(crate) fn makes_thread(&self) -> bool {
        self.kind == pthreads::CALLS && i64::from(self.value) == CREATE
    }

    fn is_in(&self, region: u32) -> bool {
        self.region == region || self.callers.contains(&region)
    }
}

/// What is recorded with a collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collective {
    pub(crate) visit: u32,
    /// Which call, even if it is not whole.
    pub(crate) value: i32,
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
    /// Whether others can have it at the same time.
    pub(crate) is_shared: bool,
}

/// What is odd in the events of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Calls that began before the trace, or end after it.
    pub(crate) open_at_start: u64,
    pub(crate) open_at_end: u64,
    /// Calls during which nothing was recorded for a time.
    pub(crate) paused: u64,
    /// Events that say how many calls there were, instead of calls.
    pub(crate) statistics: u64,
    /// States of communication without a call.
    pub(crate) only_states: u64,
    /// Ticks in calls in which the thread was running, and all ticks of a thread with states.
    pub(crate) running_in_calls: i64,
    /// See `running_in_calls`.
    pub(crate) with_states: i64,
    /// Barriers in which the thread works.
    pub(crate) working_barriers: u64,
    /// Ends of what did not begin.
    pub(crate) ends: u64,
    /// Regions that end after the region around them.
    pub(crate) crossings: u64,
    /// Values of counters that cannot be.
    pub(crate) samples: u64,
    /// Calls that found nothing, while the thread did something else.
    pub(crate) tests: u64,
}

/// A thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// In order of begin, what is around others first.
    pub(crate) visits: Vec<Visit>,
    pub(crate) whats: Vec<What>,
    /// The visits that are calls of MPI.
    pub(crate) calls: Vec<u32>,
    pub(crate) collectives: Vec<Collective>,
    pub(crate) holdings: Vec<Holding>,
    pub(crate) gaps: Gaps,
    /// What counters counted since their last sample.
    pub(crate) samples: Records,
    pub(crate) regions: Vec<Region>,
    /// Teams that it forks of which only its own part is known.
    pub(crate) forks_alone: u64,
    /// What the thread's parts in teams are.
    pub(crate) part: u32,
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
    /// Ticks of a second.
    pub(crate) second: i64,
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
    Pthread,
    Life,
    Mpi,
    Other,
}

impl Track {
    fn of(kind: u32, types: &[u32]) -> Option<Self> {
        match kind {
            FUNCTION => Some(Self::Function),
            _ if calls::is_mpi(kind) => Some(Self::Mpi),
            OUTLINED => Some(Self::Outlined),
            pthreads::CALLS => Some(Self::Pthread),
            LIFE => Some(Self::Life),
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
            Self::Life => 0,
            Self::Function => 1,
            Self::Parallel => 2,
            Self::Outlined => 3,
            Self::Other => 4,
            Self::Lock | Self::OpenMp | Self::Pthread => 5,
            Self::Mpi => 6,
        }
    }

    /// Whether a region of a type can be in another one of it.
    fn nests(self) -> bool {
        matches!(self, Self::Function | Self::Parallel | Self::Outlined | Self::Life)
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
    /// Those of its own line, if it is a call.
    arguments: Option<Arguments>,
}

impl Begin {
    /// Whether it is that a thread has a lock.
    fn is_having(&self) -> bool {
        self.track == Track::Lock && self.value == HAS
    }
}

/// What is recorded of a collective call.
#[derive(Debug, Clone, Copy, Default)]
struct Arguments {
    communicator: Option<i64>,
    sent: i64,
    received: i64,
    is_root: bool,
}

impl Arguments {
    /// Notes an event; whether it is of a collective call.
    fn note(&mut self, kind: u32, value: i64) -> bool {
        match kind {
            50_100_001 => self.sent = value,
            50_100_002 => self.received = value,
            50_100_003 => self.is_root = value != 0,
            50_100_004 => self.communicator = Some(value),
            _ => return false,
        }
        true
    }
}

/// What is recorded with the call that begins in the current instant.
#[derive(Debug, Default)]
struct Attributes {
    /// Those in lines without a call.
    arguments: Arguments,
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
}

struct Builder<'a> {
    context: Context<'a>,
    regions: Regions<'a>,
    whats: Numbered<What>,
    /// One that is looked up.
    what: What,
    thread: Thread,
    open: Vec<Open>,
    /// Locks that the thread has, as often as it has them: their types, and where they are in `holdings`.
    held: Vec<(u32, usize)>,
    /// Types that have begun, and how many regions of each ended with those around them.
    known: Vec<(u32, u64)>,
    /// When the last region ended.
    closed: i64,
    polls: Polls,
    attributes: Attributes,
    /// What the recorder did.
    switches: Vec<Switch>,
}

impl Thread {
    /// Reads the records of a thread.
    pub(crate) fn new(records: Records, context: Context<'_>) -> Self {
        let mut builder = Builder {
            context,
            regions: Regions::new(context.labels),
            whats: Numbered::default(),
            what: What::default(),
            thread: Self::default(),
            open: Vec::new(),
            held: Vec::new(),
            known: Vec::new(),
            closed: i64::MIN,
            polls: Polls::default(),
            attributes: Attributes::default(),
            switches: Vec::new(),
        };
        if context.is_first && !records.is_empty() {
            let region = builder.regions.program();
            builder.open(0, region, (0, 0));
        }
        let versions = Versions::new(context.labels, records.kinds());
        match records.sorted_lines() {
            Some(sorted) => builder.events(sorted.into_iter(), versions),
            None => builder.events(records.lines(), versions),
        }
        let Builder { mut regions, mut whats, mut thread, switches, .. } = builder.end();
        let region = regions.of(openmp::PART, 0, 0);
        thread.part = whats.add(What { region, kind: openmp::PART, ..What::default() });
        let has_states = records.states().next().is_some();
        thread.gaps = Gaps::new(records, &switches, context.end, |state| regions.state(state));
        thread.pause(&mut whats);
        if has_states {
            thread.compare_states(&whats.list, context.end);
        }
        thread.regions = regions.into_list();
        thread.whats = whats.list;
        thread.visits.shrink_to_fit();
        thread.samples.shrink();
        thread
    }

    /// Notes which calls are not whole because recording was off meanwhile.
    fn pause(&mut self, whats: &mut Numbered<What>) {
        let mut pauses = self.gaps.pauses().peekable();
        for visit in &mut self.visits {
            while pauses.next_if(|pause| pause.1 <= visit.begin).is_some() {}
            if pauses.peek().is_none_or(|pause| visit.end <= pause.0) {
                continue;
            }
            let what = &whats.list[visit.what as usize];
            if calls::is_mpi(what.kind) && what.value != 0 {
                visit.what = whats.add(What { value: 0, ..what.clone() });
                self.odd.paused += 1;
            }
        }
    }

    /// Notes where states and calls contradict each other.
    fn compare_states(&mut self, whats: &[What], end: i64) {
        if self.gaps.iter().next().is_none() {
            return;
        }
        let all = || self.visits.iter().map(|visit| (visit, &whats[visit.what as usize]));
        let all = || all().filter(|(_, what)| calls::is_mpi(what.kind));
        let calls = || all().map(|(visit, _)| (visit.begin, visit.end));
        // Extrae takes it for running that a thread asks.
        let others = || all().filter(|(_, what)| !what.polls).map(|(visit, _)| (visit.begin, visit.end));
        let gaps = || self.gaps.iter().map(|gap| (gap.begin, gap.end));
        self.odd.only_states = outside(self.gaps.communication(), calls()).filter(|left| *left > 0).count() as u64;
        self.odd.running_in_calls = outside(others(), gaps()).sum();
        self.odd.with_states = end;
    }

    /// Number of calls of one-sided communication.
    pub(crate) fn one_sided_calls(&self) -> u64 {
        let kinds = self.calls.iter().map(|call| self.what(&self.visits[*call as usize]).kind);
        kinds.filter(|kind| *kind == calls::ONE_SIDED).count() as u64
    }

    /// Whether functions are recorded by themselves.
    pub(crate) fn has_functions(&self) -> bool {
        self.whats.iter().any(|what| matches!(what.kind, FUNCTION | OUTLINED | LIFE))
    }

    /// What a visit is.
    pub(crate) fn what(&self, visit: &Visit) -> &What {
        &self.whats[visit.what as usize]
    }

    /// Finds the calls among the visits, which are final.
    pub(crate) fn find_calls(&mut self) {
        let visits = (0..).zip(&self.visits);
        let calls = visits.filter(|(_, visit)| calls::is_mpi(self.what(visit).kind)).map(|(at, _)| at);
        self.calls = calls.collect();
    }
}

/// How long each of some stretches is outside of others; both are in order.
pub(crate) fn outside(
    stretches: impl Iterator<Item = (i64, i64)>,
    others: impl Iterator<Item = (i64, i64)>,
) -> impl Iterator<Item = i64> {
    let mut others = others.peekable();
    stretches.map(move |(begin, end)| {
        let mut left = end - begin;
        while let Some((from, until)) = others.peek().copied().filter(|other| other.0 < end) {
            left -= (until.min(end) - from.max(begin)).max(0);
            if until > end {
                break;
            }
            others.next();
        }
        left.max(0)
    })
}

impl Builder<'_> {
    fn events<'r>(&mut self, lines: impl Iterator<Item = Line<'r>>, mut versions: Versions<'_>) {
        let mut begins: Vec<Begin> = Vec::new();
        let mut ends: Vec<(Track, u32)> = Vec::new();
        let mut samples: Vec<(u32, i64)> = Vec::new();
        let mut lines = lines.peekable();
        while let Some(first) = lines.next() {
            let time = first.time;
            begins.clear();
            ends.clear();
            samples.clear();
            self.attributes.clear();
            let mut line = Some(first);
            while let Some(one) = line {
                let (mut arguments, mut has_any, known) = (Arguments::default(), false, begins.len());
                for (kind, value) in one.pairs() {
                    if arguments.note(kind, value) {
                        has_any = true;
                        continue;
                    }
                    if is_counter(kind) && !self.context.types.contains(&kind) {
                        self.sample((kind, value), &mut samples);
                        continue;
                    }
                    let [event, more] = versions.events(kind, value);
                    if let Some(event) = event {
                        self.event(time, event, (&mut begins, &mut ends));
                    }
                    if let Some((kind, value)) = more {
                        self.attributes.note(kind, value);
                    }
                }
                if has_any {
                    match begins[known..].iter_mut().find(|begin| begin.track == Track::Mpi) {
                        Some(begin) => begin.arguments = Some(arguments),
                        None => one.pairs().for_each(|(kind, value)| _ = self.attributes.arguments.note(kind, value)),
                    }
                }
                line = lines.next_if(|next| next.time == time);
            }
            // The function is that of the new thread.
            let creates = begins.iter().any(|begin| (begin.track, begin.value) == (Track::Pthread, CREATE));
            if creates {
                begins.retain(|begin| begin.track != Track::Life);
            }
            // It ends with the call, which can end in the same instant.
            if creates || self.open.last().is_some_and(|open| self.what(open.visit).makes_thread()) {
                let own = ends.iter().position(|(track, _)| *track == Track::Life);
                own.map(|at| ends.remove(at));
            }
            if !samples.is_empty() {
                let mut samples = samples.iter().copied();
                self.thread.samples.line(time, || samples.next());
            }
            // Whatever the order of records: what is open ends first, then what begins, if anything is left.
            self.end_open(time, &mut ends, &begins);
            begins.sort_by_key(|begin| self.order(begin));
            for (_, kind) in ends.drain(..) {
                let mut begun = begins.iter_mut();
                match begun.find(|begin| begin.kind == kind && !begin.has_ended && !begin.is_having()) {
                    Some(begin) => begin.has_ended = true,
                    None => self.surplus(time, kind),
                }
            }
            begins.sort_by_key(|begin| (self.order(begin), !begin.has_ended));
            for begin in &begins {
                self.begin(time, *begin);
            }
        }
    }

    #[inline]
    fn event(
        &mut self,
        time: i64,
        (kind, value): (u32, i64),
        (begins, ends): (&mut Vec<Begin>, &mut Vec<(Track, u32)>),
    ) {
        match Track::of(kind, self.context.types) {
            Some(track) if value != 0 => begins.push(Begin { track, kind, value, has_ended: false, arguments: None }),
            Some(track) => ends.push((track, kind)),
            None if states::is_switch(kind) => self.switches.push((time, kind, value)),
            None if calls::is_statistic(kind) => self.thread.odd.statistics += 1,
            None if polling::is_counter(kind) => self.polls.note(time, kind, value),
            None => self.attributes.note(kind, value),
        }
    }

    fn sample(&mut self, sample: (u32, i64), samples: &mut Vec<(u32, i64)>) {
        if (0..=MOST_COUNTED).contains(&sample.1) {
            samples.push(sample);
        } else {
            self.thread.odd.samples += 1;
        }
    }

    /// Ends in an instant what is open, from the innermost region on; leaves the ends of what is not open.
    fn end_open(&mut self, time: i64, ends: &mut Vec<(Track, u32)>, begins: &[Begin]) {
        // Who has a lock does not ask for it any more: what ends is what follows.
        let is_had = |kind: u32| begins.iter().any(|begin| begin.is_having() && begin.kind == kind);
        let end_of =
            |ends: &[(Track, u32)], open: &Open| ends.iter().position(|(_, kind)| *kind == open.kind && !is_had(*kind));
        while let Some(at) = self.open.iter().rev().find_map(|open| end_of(ends, open)) {
            let (_, kind) = ends.remove(at);
            self.close(time, kind);
        }
    }

    /// The end of what is not open: it ended early, or began before the trace.
    fn surplus(&mut self, time: i64, kind: u32) {
        match self.known.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, early)) if *early > 0 => *early -= 1,
            // A lock is not given back in a region of its own.
            Some(_) if openmp::is_lock(kind) => self.held.retain(|(held, _)| *held != kind),
            Some(_) => self.thread.odd.ends += 1,
            None => self.began_before(time, kind),
        }
    }

    /// What begins first of that which begins in one instant.
    fn order(&self, begin: &Begin) -> (bool, u8, i64) {
        if begin.track != Track::Lock {
            return (true, begin.track.order(), 0);
        }
        let open = self.open.iter().rev().find(|open| open.kind == begin.kind);
        let last = match open.map(|open| i64::from(self.what(open.visit).value)) {
            Some(value) => value,
            None if self.held.iter().any(|(kind, _)| *kind == begin.kind) => HAS,
            None => GIVES,
        };
        // A thread asks for a lock, has it, gives it back, and asks again.
        let place = |value| [ASKS, HAS, GIVES].iter().position(|known| *known == value).unwrap_or(0) as i64;
        let since = (place(begin.value) - place(last) + 2) % 3;
        // A thread that has the lock that it asked for does not wait any more.
        (!(open.is_some() && begin.is_having()), begin.track.order(), since)
    }

    fn begin(&mut self, time: i64, begin: Begin) {
        let Begin { track, kind, value, has_ended, arguments } = begin;
        let before = self.open.iter().rev().find(|open| open.kind == kind).map(|open| open.visit);
        if before.is_some() && !track.nests() {
            self.close(time, kind);
        }
        self.know(kind);
        if begin.is_having() {
            // Having it is the program's own work.
            let asks = before.filter(|visit| i64::from(self.what(*visit).value) == ASKS);
            let address = self.attributes.lock.unwrap_or(-i64::from(kind));
            let Some(acquire) = asks else { return };
            let holdings = &mut self.thread.holdings;
            // A thread that has the lock already has it once more.
            let held = self.held.iter().map(|(_, at)| *at).find(|at| holdings[*at].address == address);
            if held.is_none() {
                holdings.push(Holding { address, acquire, release: None, is_shared: false });
            }
            self.held.push((kind, held.unwrap_or(holdings.len() - 1)));
            return;
        }
        let attributes = std::mem::take(&mut self.attributes);
        let is_call = track == Track::Mpi;
        let mut callers = std::mem::take(&mut self.what.callers);
        callers.clear();
        if is_call {
            for caller in attributes.callers.iter().rev().filter(|caller| **caller > UNKNOWN_CALLERS) {
                let region = self.regions.caller(*caller);
                if !callers.contains(&region) && !self.open.iter().any(|open| self.what(open.visit).is_in(region)) {
                    callers.push(region);
                }
            }
            self.thread.levels = self.thread.levels.max(attributes.callers.len());
        }
        self.what.callers = callers;
        let poll = is_call.then(|| self.poll(time, value)).flatten();
        let region = match poll {
            Some(_) => self.regions.polling(kind, value, attributes.place),
            None => self.regions.of(kind, value, if is_call { attributes.place } else { 0 }),
        };
        if track == Track::Function && self.is_program(region) {
            // It is open already.
            let visit = self.open.last().map_or(0, |open| open.visit);
            self.open.extend((!has_ended).then_some(Open { visit, kind }));
            self.attributes = attributes;
            return;
        }
        self.what.lock = attributes.lock.filter(|_| track == Track::Pthread && pthreads::is_for_lock(value));
        self.what.polls = poll.is_some();
        let visit = self.open(poll.unwrap_or(time), region, (kind, i32::try_from(value).unwrap_or(i32::MAX)));
        (self.what.lock, self.what.polls) = (None, false);
        if is_call && calls::operation(value).is_some() {
            let Arguments { communicator, sent, received, is_root } = arguments.unwrap_or(attributes.arguments);
            let value = value as i32;
            self.thread.collectives.push(Collective { visit, value, communicator, sent, received, is_root });
        }
        self.attributes = attributes;
        if track == Track::Lock && value == GIVES {
            // The last one, unless it is said which.
            let is_it = |(held, at): &(u32, usize)| {
                let address = self.thread.holdings[*at].address;
                *held == kind && self.attributes.lock.is_none_or(|lock| lock == address)
            };
            if let Some(at) = self.held.iter().rposition(is_it) {
                let (_, holding) = self.held.remove(at);
                if !self.held.iter().any(|(_, held)| *held == holding) {
                    self.thread.holdings[holding].release = Some(visit);
                }
            }
        }
        if has_ended {
            self.close(time, kind);
        }
    }

    /// When the thread began to ask for what a call finds, if it did nothing else meanwhile.
    fn poll(&mut self, time: i64, call: i64) -> Option<i64> {
        let run = self.polls.end(call)?;
        let last = self.thread.visits.last().map_or(i64::MIN, |visit| visit.begin);
        let waits = last.max(self.closed) <= run.begin && run.waits(time, self.context.second);
        if !waits {
            self.thread.odd.tests += run.count.unsigned_abs();
        }
        waits.then_some(run.begin)
    }

    /// Whether a region is what surrounds all that the task or a new thread does, and nothing else is open in that.
    fn is_program(&self, region: u32) -> bool {
        let Some((open, around)) = self.open.split_last() else { return false };
        let surrounds = open.kind == LIFE || self.context.is_first && around.is_empty();
        surrounds && self.what(open.visit).region == region
    }

    fn what(&self, visit: u32) -> &What {
        &self.whats.list[self.thread.visits[visit as usize].what as usize]
    }

    fn know(&mut self, kind: u32) {
        if !self.known.iter().any(|(known, _)| *known == kind) {
            self.known.push((kind, 0));
        }
    }

    /// Opens a visit, in the callers that are noted.
    fn open(&mut self, begin: i64, region: u32, (kind, value): (u32, i32)) -> u32 {
        let visit = self.thread.visits.len() as u32;
        let depth = self.open.last().map_or(0, |around| self.thread.visits[around.visit as usize].depth + 1);
        (self.what.region, self.what.kind, self.what.value) = (region, kind, value);
        let what = self.whats.number(&self.what);
        self.thread.visits.push(Visit { begin, end: begin, depth, what });
        self.open.push(Open { visit, kind });
        visit
    }

    /// Ends the innermost region of a type, with all that is in it.
    fn close(&mut self, time: i64, kind: u32) {
        self.closed = time;
        while let Some(open) = self.open.pop() {
            self.thread.visits[open.visit as usize].end = time;
            if open.kind == kind {
                return;
            }
            self.thread.odd.crossings += 1;
            if let Some((_, early)) = self.known.iter_mut().find(|(known, _)| *known == open.kind) {
                *early += 1;
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
        let what = self.whats.add(What { region, kind, ..What::default() });
        self.thread.visits.insert(at, Visit { begin, end, depth, what });
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
            if open.kind != 0 {
                // Nobody knows what it would have done.
                let what = What { value: 0, ..self.whats.list[visit.what as usize].clone() };
                visit.what = self.whats.add(what);
                self.thread.odd.open_at_end += 1;
            }
        }
        self
    }
}
