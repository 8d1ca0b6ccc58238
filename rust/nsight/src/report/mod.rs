//! One report: the rows of its tables by process.

mod threads;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whywait_devices::{Copy, Device, NONE, file_name};
use whywait_otf2::{Oddity, OddityKind, error::Place};

use crate::names::Names;
use crate::nccl;
use crate::options::Options;
use crate::payload::Layouts;
use crate::rows::{
    ABSENT, CommRow, EventRecord, Kind, MpiRow, MpiTable, NO_DETAIL, ProcessRows, Span, Sync, Task, ThreadRows, Work,
};
use crate::samples::Stacks;
use crate::schema::{Lacking, NAMES, base, find, lacking};
use crate::sqlite::{Database, Row, Table};
use crate::{Error, Result};

/// The low bits of the number of a thread that tell it from others of its process.
const THREAD: i64 = 0xff_ffff;
/// Where the number of a process in the system begins in that of its threads.
const PROCESS_SHIFT: u32 = 24;
/// Types of rows of ranges.
const RANGE: i64 = 59;
const LOOSE_RANGE: i64 = 60;
const DOMAIN: i64 = 75;
/// Types of rows without a length: categories, marks, names of threads, begins and ends of domains.
const OTHER_TYPES: [i64; 5] = [33, 34, 39, DOMAIN, 76];
/// What ranges of NCCL have in common with those of devices.
const JOINED: &str = "apiId";
/// Times of a session are far below, UTC is above.
const NORMALIZED: i64 = 100_000_000_000_000_000;
/// A time beyond is none, ns.
const LATEST: i64 = 1 << 61;
/// The end of what the session cuts, until it is known when that is.
const CUT: i64 = i64::MAX;
/// The lowest severity of what is worth a word.
const WARNING: i64 = 2;
/// Characters of a message that are shown.
const LONGEST_MESSAGE: usize = 160;
/// More ranks than any run has.
const MOST_RANKS: u32 = 1 << 20;
/// A call of the operating system is of interest from this length on, ns.
const SHORTEST_SYSTEM_CALL: i64 = 100_000;
/// The domains of ranges that the tool or libraries make.
const NCCL: &str = "NCCL";
const MPI: &str = "MPI";

/// When a session began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// In UTC, as the machine knew it.
    pub(crate) utc: Option<i64>,
    /// On the clock of the machine, the same for all its sessions.
    pub(crate) system: Option<i64>,
    /// Whether times are UTC already.
    pub(crate) is_normalized: bool,
}

/// What cannot be read of NCCL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NcclDefects {
    /// Operations without data.
    pub(crate) without_data: u64,
    /// Operations with data of a form that is not known, and rows of a kind that is not.
    pub(crate) unknown: u64,
    /// Ranges with numbers that join calls and what devices do.
    pub(crate) joined: u64,
}

/// One report.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) path: PathBuf,
    /// Versions of the tool and of the tables.
    pub(crate) product: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) host: Option<String>,
    /// What tells the machine from others with the same name.
    pub(crate) hardware: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    /// The call paths of samples.
    pub(crate) stacks: Stacks,
    pub(crate) devices: Vec<Device>,
    /// What a process calls each device: its number in the system, its number for the process, and that among `devices`.
    pub(crate) visible: Vec<(i64, Device, i64)>,
    /// By number of the process.
    pub(crate) processes: BTreeMap<i64, ProcessRows>,
    /// Communicators as each of their ranks knows them.
    pub(crate) communicators: Vec<CommRow>,
    /// Tables that were read, with the number of their rows, and those that were not.
    pub(crate) read: Vec<(&'static str, u64)>,
    pub(crate) unread: Vec<String>,
    pub(crate) has_graphs: bool,
    /// What cannot be read of NCCL.
    pub(crate) nccl: NcclDefects,
    pub(crate) oddities: Vec<Oddity>,
}

impl Report {
    /// Reads a file.
    pub(crate) fn read(path: &Path, options: &Options) -> Result<Self> {
        let database = Database::open(path).map_err(Error::io(path))?;
        if let Some(other) = database.unfinished() {
            let why = format!(
                "{}{other} beside it has changes that are not in it yet: copy it with `sqlite3 {0} \"VACUUM INTO 'copy.sqlite'\"`",
                file_name(path)
            );
            return Err(Error::damaged(path, why));
        }
        let mut reader = Reader {
            database: Arc::new(database),
            report: Self {
                path: path.to_owned(),
                product: None,
                schema: None,
                host: None,
                hardware: None,
                clock: Clock::default(),
                names: Names::new(options.all_names),
                stacks: Stacks::default(),
                devices: Vec::new(),
                visible: Vec::new(),
                processes: BTreeMap::new(),
                communicators: Vec::new(),
                read: Vec::new(),
                unread: Vec::new(),
                has_graphs: false,
                nccl: NcclDefects::default(),
                oddities: Vec::new(),
            },
            threads: FxHashMap::default(),
            all_names: options.all_names,
        };
        reader.read()?;
        Ok(reader.report)
    }

    /// The devices of a process, by the numbers that it calls them. Each process may call its only device the first: unless the
    /// report says which these are, devices of several processes have no identity.
    pub(crate) fn devices_of(&self, process: i64, has_others: bool) -> Vec<Device> {
        let number = process >> PROCESS_SHIFT & THREAD;
        let own = || self.visible.iter().filter(|(of, ..)| *of == number);
        if own().next().is_none() {
            let identity = |device: &Device| device.identity.clone().filter(|_| !has_others);
            return self.devices.iter().map(|device| Device { identity: identity(device), ..device.clone() }).collect();
        }
        let device = |(_, device, gpu): &(i64, Device, i64)| {
            let known = self.devices.iter().find(|known| known.number == *gpu);
            let name = known.map(|known| known.name.clone()).unwrap_or_default();
            let identity = device.identity.clone().or_else(|| known.and_then(|known| known.identity.clone()));
            Device { number: device.number, name, identity }
        };
        own().map(device).collect()
    }

    /// Notes something odd; a table is named in front of what is odd in it.
    pub(crate) fn note(&mut self, kind: OddityKind, text: String) {
        self.oddities.push(Oddity { kind, place: Place { path: self.path.clone(), offset: 0 }, text });
    }
}

/// The whole numbers in a text, whatever is between them.
fn integers(text: &str) -> Vec<i64> {
    let is_part = |character: char| character.is_ascii_digit() || character == '-';
    text.split(|character| !is_part(character)).filter_map(|number| number.parse().ok()).collect()
}

/// The first line of a message, unless it may have variables of the environment.
fn shown(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(LONGEST_MESSAGE).collect();
    if line.contains('=') { "(its text is not shown, since it has values)".to_owned() } else { line }
}

/// A name of a machine rather than anything else.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|character| character.is_alphanumeric() || matches!(character, '.' | '-' | '_'))
}

fn correlation(row: &mut Row<'_>, column: usize) -> Option<NonZeroU64> {
    row.integer(column).and_then(|number| u64::try_from(number).ok()).and_then(NonZeroU64::new)
}

/// Where a copy goes, by its number in the profiling interface.
const fn copy(direction: Option<i64>) -> Copy {
    match direction {
        Some(1 | 3) => Copy::ToDevice,
        Some(2 | 4 | 9) => Copy::ToHost,
        Some(10) => Copy::Between,
        _ => Copy::Within,
    }
}

struct Reader {
    database: Arc<Database>,
    report: Report,
    /// The place of each thread in its process.
    threads: FxHashMap<i64, usize>,
    /// Whether names are as they are in the file, and calls within libraries are read.
    all_names: bool,
}

/// Begin and end of a row whose first two columns are these; nothing if there is no begin, or if they cannot be.
fn times(row: &mut Row<'_>) -> Option<(i64, Option<i64>)> {
    let (begin, end) = (row.integer(0)?, row.integer(1));
    let is_possible = |time: &i64| (-LATEST..LATEST).contains(time);
    let end = end.map(|end| end.max(begin));
    (is_possible(&begin) && end.as_ref().is_none_or(is_possible)).then_some((begin, end))
}

impl Reader {
    fn read(&mut self) -> Result<()> {
        self.about()?;
        self.names()?;
        self.definitions()?;
        self.runtime()?;
        self.ranges()?;
        self.openmp()?;
        self.openacc()?;
        self.mpi()?;
        self.system()?;
        self.ucx()?;
        self.overhead()?;
        self.samples()?;
        self.scheduling()?;
        self.end_threads();
        self.works()?;
        self.end_works();
        self.syncs()?;
        self.rest();
        Ok(())
    }

    /// Sends the rows of a table with the columns that it has; whether there is such a table.
    fn scan(
        &mut self,
        name: &'static str,
        columns: &[&str],
        mut each: impl FnMut(&mut Self, &mut Row<'_>),
    ) -> Result<bool> {
        let Some(table) = find(&self.database, name).cloned() else { return Ok(false) };
        let path = self.report.path.clone();
        if table.has_no_row_numbers {
            let why = format!(
                "its table {} is WITHOUT ROWID, as no export is: export it again, or copy it with `VACUUM INTO`",
                table.name
            );
            return Err(Error::damaged(&path, why));
        }
        let wanted: Vec<Option<usize>> = columns.iter().map(|column| table.column(column)).collect();
        let mut rows = 0;
        let database = Arc::clone(&self.database);
        let scanned = database.scan(&table, &wanted, |row| {
            rows += 1;
            each(self, row);
        });
        let defects = scanned.map_err(Error::io(&path))?;
        if defects.are_many() {
            let why = format!(
                "{} of {} pages of its table {} cannot be read, the first of them page {}",
                defects.unreadable, defects.pages, table.name, defects.first_unreadable
            );
            return Err(Error::damaged(&path, why));
        }
        let report = &mut self.report;
        if rows > 0 {
            report.read.push((name, rows));
            for Lacking { column, kind, consequence } in lacking(&table) {
                report.note(kind, format!("{}: it has no column {column}: {consequence}", table.name));
            }
        }
        let mut count = |kind, number: u64, what: &str| {
            if number > 0 {
                report.note(kind, format!("{}: {number} {what}", table.name));
            }
        };
        let unreadable = format!("pages cannot be read, the first of them page {}", defects.first_unreadable);
        count(OddityKind::Unreadable, defects.unreadable, &format!("{unreadable}: their rows are left out"));
        count(OddityKind::Missing, defects.missing, "pages are missing, since the file ends too early");
        count(OddityKind::Range, defects.odd_rows, "rows have values that cannot be, and are left out");
        Ok(true)
    }

    /// What is known of the report itself. Of what was recorded of the job's environment, three values are looked at.
    fn about(&mut self) -> Result<()> {
        for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
            self.scan(table, &["name", "value"], |reader, row| {
                let value = row.text(1).map(Cow::into_owned);
                match row.text(0).as_deref() {
                    Some("EXPORT_PRODUCT_VERSION") => reader.report.product = value,
                    Some("EXPORT_SCHEMA_VERSION") => reader.report.schema = value,
                    _ => {}
                }
            })?;
        }
        for table in ["META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"] {
            self.scan(table, &["name", "value"], |reader, row| {
                let Some(name) = row.text(0) else { return };
                let value = |row: &Row<'_>| row.text(1).map(Cow::into_owned).filter(|text| is_word(text));
                match name.as_ref() {
                    "Hostname" => reader.report.host = value(row),
                    "NSYS_HW_ID" => reader.report.hardware = value(row),
                    _ => {}
                }
            })?;
        }
        // How much of these there is is nobody's business.
        self.report.read.clear();
        self.scan("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs", "systemClockNs"], |reader, row| {
            let clock = Clock { utc: row.integer(0), system: row.integer(1), is_normalized: false };
            reader.report.clock = clock;
        })?;
        Ok(())
    }

    fn names(&mut self) -> Result<()> {
        let has_names = self.scan(NAMES, &["id", "value"], |reader, row| {
            let (Some(id), Some(text)) = (row.integer(0), row.text(1)) else { return };
            reader.report.names.define(id, &text);
        })?;
        if has_names {
            return Ok(());
        }
        let why = format!("an export of Nsight Systems has a table {NAMES}, which it has not");
        Err(Error::damaged(&self.report.path, why))
    }

    fn definitions(&mut self) -> Result<()> {
        self.scan("TARGET_INFO_GPU", &["id", "name", "uuid", "busLocation"], |reader, row| {
            let Some(number) = row.integer(0) else { return };
            let identity = row.text(2).or_else(|| row.text(3)).filter(|text| !text.is_empty());
            let name = row.text(1).unwrap_or_default().into_owned();
            reader.report.devices.push(Device { number, name, identity: identity.map(Cow::into_owned) });
        })?;
        self.scan("TARGET_INFO_CUDA_DEVICE", &["pid", "cudaId", "gpuId", "uuid"], |reader, row| {
            let (Some(process), Some(number), gpu) = (row.integer(0), row.integer(1), row.integer(2)) else { return };
            let identity = row.text(3).filter(|text| !text.is_empty()).map(Cow::into_owned);
            let device = Device { number, name: String::new(), identity };
            reader.report.visible.push((process, device, gpu.unwrap_or(number)));
        })?;
        self.scan("MPI_RANKS", &["globalTid", "rank"], |reader, row| {
            let (Some(thread), Some(rank)) = (row.integer(0), row.integer(1)) else { return };
            match u32::try_from(rank) {
                Ok(rank) if rank < MOST_RANKS => reader.process(thread).rank = Some(rank),
                _ => row.leave_out(),
            }
        })?;
        self.scan("ThreadNames", &["globalTid", "nameId"], |reader, row| {
            let (Some(thread), name) = (row.integer(0), row.integer(1)) else { return };
            let name = reader.report.names.of(name);
            reader.thread(thread).name = reader.report.names.get(name).to_owned();
        })?;
        let mut said: BTreeMap<String, u64> = BTreeMap::new();
        self.scan("DIAGNOSTIC_EVENT", &["severity", "text"], |_, row| {
            if let (Some(WARNING..), Some(text)) = (row.integer(0), row.text(1)) {
                *said.entry(shown(&text)).or_default() += 1;
            }
        })?;
        for (text, count) in said {
            self.report.note(OddityKind::Missing, format!("Nsight Systems warned ({count} times): {text}"));
        }
        Ok(())
    }

    fn process(&mut self, thread: i64) -> &mut ProcessRows {
        self.report.processes.entry(thread & !THREAD).or_default()
    }

    fn thread(&mut self, thread: i64) -> &mut ThreadRows {
        let process = self.report.processes.entry(thread & !THREAD).or_default();
        let place = *self.threads.entry(thread).or_insert_with(|| {
            process.threads.push(ThreadRows { id: thread & THREAD, ..ThreadRows::default() });
            process.threads.len() - 1
        });
        &mut process.threads[place]
    }

    /// Adds a span of a thread; without an end it lasts until the last event of the thread, which is found later.
    fn span(&mut self, row: &mut Row<'_>, thread: Option<i64>, (name, kind, detail): (u32, Kind, u64)) -> bool {
        let (Some((begin, end)), Some(thread)) = (times(row), thread) else {
            row.leave_out();
            return false;
        };
        let end = end.unwrap_or(CUT);
        self.thread(thread).spans.push(Span { begin, end, detail, name, kind });
        true
    }

    fn runtime(&mut self) -> Result<()> {
        let columns = ["start", "end", "globalTid", "correlationId", "nameId", "eventClass"];
        self.scan("CUPTI_ACTIVITY_KIND_RUNTIME", &columns, |reader, row| {
            let correlation = correlation(row, 3).map_or(NO_DETAIL, NonZeroU64::get);
            let name = row.integer(4);
            let name = reader.report.names.of(name);
            let kind = if row.integer(5) == Some(1) { Kind::Driver } else { Kind::Runtime };
            let thread = row.integer(2);
            reader.span(row, thread, (name, kind, correlation));
        })?;
        Ok(())
    }

    fn ranges(&mut self) -> Result<()> {
        let mut layouts = Layouts::default();
        let columns = ["domainId", "schemaId", "name", "type", "offset"];
        self.scan("NVTX_PAYLOAD_SCHEMA_ENTRIES", &columns, |_, row| {
            let (Some(domain), Some(layout), Some(kind)) = (row.integer(0), row.integer(1), row.integer(3)) else {
                return;
            };
            let offset = row.integer(4).unwrap_or(0);
            if let (Some(name), Ok(offset)) = (row.text(2), usize::try_from(offset)) {
                layouts.add((domain, layout), &name, kind, offset);
            }
        })?;
        // Which domains are of libraries: those of each process have numbers of its own. The table is read again.
        let (noted, read) = (self.report.oddities.len(), self.report.read.len());
        let mut domains: FxHashMap<(i64, i64), &'static str> = FxHashMap::default();
        self.scan("NVTX_EVENTS", &["eventType", "globalTid", "domainId", "text", "textId"], |reader, row| {
            let (Some(DOMAIN), Some(thread), Some(domain)) = (row.integer(0), row.integer(1), row.integer(2)) else {
                return;
            };
            let text = row.integer(4);
            let registered = reader.report.names.get(reader.report.names.of(text));
            let text = row.text(3);
            let name = text.as_deref().unwrap_or(registered);
            if let Some(name) = [NCCL, MPI].into_iter().find(|known| *known == name) {
                domains.insert((thread & !THREAD, domain), name);
            }
        })?;
        self.report.oddities.truncate(noted);
        self.report.read.truncate(read);
        let columns = [
            "start",
            "end",
            "globalTid",
            "eventType",
            "domainId",
            "text",
            "textId",
            "binaryData",
            "endGlobalTid",
            "jsonText",
            "jsonTextId",
        ];
        let mut operations: FxHashMap<u32, bool> = FxHashMap::default();
        self.scan("NVTX_EVENTS", &columns, |reader, row| {
            let (kind, thread) = (row.integer(3), row.integer(2));
            let domain = thread.zip(row.integer(4)).map(|(thread, domain)| (thread & !THREAD, domain));
            let domain = domain.and_then(|domain| domains.get(&domain)).copied();
            let kind = match (kind, domain) {
                (_, Some(MPI)) => return,
                (Some(RANGE | LOOSE_RANGE), Some(_)) => Kind::Nccl,
                (Some(RANGE), None) => Kind::Range,
                (Some(LOOSE_RANGE), None) => Kind::LooseRange,
                (Some(other), Some(_)) => {
                    reader.report.nccl.unknown += u64::from(!OTHER_TYPES.contains(&other));
                    return;
                }
                _ => return,
            };
            // A range that ends on another thread is of neither.
            if kind == Kind::LooseRange && row.integer(8).is_some_and(|end| Some(end) != thread) {
                return;
            }
            let registered = row.integer(6);
            let name = match row.text(5) {
                Some(text) => reader.report.names.add(&text),
                None => reader.report.names.of(registered),
            };
            let mut detail = NO_DETAIL;
            if kind != Kind::Nccl {
                reader.span(row, thread, (name, kind, detail));
                return;
            }
            let payload = row.bytes(7).and_then(|bytes| layouts.read(bytes));
            let report = &mut reader.report;
            let json = row.integer(10).filter(|_| row.is_null(9));
            let json = row.text(9).unwrap_or_else(|| Cow::Borrowed(report.names.get(report.names.of(json))));
            report.nccl.joined += u64::from(json.contains(JOINED));
            let is_operation = *operations.entry(name).or_insert_with(|| nccl::kind(report.names.get(name)).is_some());
            if is_operation && payload.is_none_or(|payload| payload.comm.is_none()) {
                let has_data = row.bytes(7).map_or(!row.is_null(7), |bytes| !bytes.is_empty());
                report.nccl.unknown += u64::from(has_data);
                report.nccl.without_data += u64::from(!has_data);
                if let Some(thread) = thread {
                    reader.process(thread).unsaid += 1;
                }
            }
            if let (Some(payload), Some(thread)) = (payload, thread) {
                let operations = &mut reader.process(thread).operations;
                detail = operations.len() as u64;
                operations.push(payload);
            }
            reader.span(row, thread, (name, kind, detail));
        })?;
        Ok(())
    }

    fn mpi(&mut self) -> Result<()> {
        for (name, table, peer) in [
            ("MPI_P2P_EVENTS", MpiTable::PointToPoint, "remoteRank"),
            ("MPI_COLLECTIVES_EVENTS", MpiTable::Collective, "rootRank"),
            ("MPI_START_WAIT_EVENTS", MpiTable::Requests, ""),
            ("MPI_OTHER_EVENTS", MpiTable::Other, ""),
        ] {
            let columns = [
                "start",
                "end",
                "globalTid",
                "textId",
                "commHandle",
                "commUid",
                peer,
                "tag",
                "size",
                "recvSize",
                "requestHandle",
            ];
            let has_tags = find(&self.database, name).is_some_and(|table| table.column("tag").is_some());
            let has_messages = has_tags || table != MpiTable::PointToPoint;
            self.scan(name, &columns, |reader, row| {
                let (Some((begin, end)), Some(thread)) = (times(row), row.integer(2)) else {
                    return row.leave_out();
                };
                let text = row.integer(3);
                let name = reader.report.names.of(text);
                let begins = reader.report.names.get(name).starts_with("MPI_Init");
                let mut value = |column| row.integer(column).unwrap_or(ABSENT);
                let [comm, comm_uid, peer, tag] = [4, 5, 6, 7].map(&mut value);
                let peer = if has_messages { peer } else { ABSENT };
                let [size, received, request] = [8, 9, 10].map(&mut value);
                let own = (thread & THREAD) as u32;
                let (until, end) = (end.unwrap_or(begin), end.unwrap_or(CUT));
                let row =
                    MpiRow { begin, end, thread: own, comm, comm_uid, peer, tag, size, received, request, name, table };
                reader.process(thread).mpi.push(row);
                let thread = reader.thread(thread);
                thread.mpi_calls += 1;
                thread.begins_mpi |= begins;
                thread.until = thread.until.max(until);
            })?;
        }
        let columns =
            ["rank", "localRank", "timestamp", "commHandle", "size", "groupRoot", "groupRootUid", "commUid", "members"];
        self.scan("MPI_COMMUNICATORS", &columns, |reader, row| {
            let members = row.text(8).unwrap_or_default();
            let mut value = |column| row.integer(column).unwrap_or(ABSENT);
            let [rank, local_rank, time, handle] = [0, 1, 2, 3].map(&mut value);
            let [size, root, root_uid, uid] = [4, 5, 6, 7].map(&mut value);
            let members = integers(&members);
            let row = CommRow { rank, local_rank, time, handle, size, root, root_uid, uid, members };
            reader.report.communicators.push(row);
        })?;
        Ok(())
    }

    /// Calls of the operating system: short ones, of which a report may have more than of all else, are left out.
    fn system(&mut self) -> Result<()> {
        self.scan("OSRT_API", &["start", "end", "globalTid", "nameId"], |reader, row| {
            let (Some((begin, end)), thread, name) = (times(row), row.integer(2), row.integer(3)) else {
                return row.leave_out();
            };
            if end.is_none_or(|end| end - begin >= SHORTEST_SYSTEM_CALL) {
                let name = reader.report.names.of(name);
                reader.span(row, thread, (name, Kind::System, NO_DETAIL));
            }
        })?;
        Ok(())
    }

    fn works(&mut self) -> Result<()> {
        for (table, task) in [
            ("CUPTI_ACTIVITY_KIND_KERNEL", Task::Kernel),
            ("CUPTI_ACTIVITY_KIND_MEMCPY", Task::Copy(Copy::Within)),
            ("CUPTI_ACTIVITY_KIND_MEMSET", Task::Memset),
            ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Task::Graph),
        ] {
            let columns = [
                "start",
                "end",
                "globalPid",
                "correlationId",
                "deviceId",
                "contextId",
                "streamId",
                "shortName",
                "copyKind",
                "demangledName",
            ];
            let has_graphs = self.scan(table, &columns, |reader, row| {
                let (Some((begin, end)), Some(process), Some(stream)) = (times(row), row.integer(2), row.integer(6))
                else {
                    return row.leave_out();
                };
                let names = &reader.report.names;
                let short = row.integer(7);
                let long = row.integer(9);
                let name = Some(names.of(short)).filter(|name| *name != NONE).unwrap_or_else(|| names.of(long));
                let stream = (row.integer(4).unwrap_or(0), row.integer(5).unwrap_or(0), stream);
                let task = if matches!(task, Task::Copy(_)) { Task::Copy(copy(row.integer(8))) } else { task };
                let correlation = correlation(row, 3);
                let process = reader.process(process);
                let stream = process.streams.add(stream);
                let end = end.unwrap_or(CUT);
                let work = Work { begin, end, correlation, stream, name, launch: NONE, task, operation: None };
                process.works.push(work);
            })?;
            self.report.has_graphs |= has_graphs && task == Task::Graph;
        }
        Ok(())
    }

    fn syncs(&mut self) -> Result<()> {
        let columns = ["globalPid", "correlationId", "deviceId", "streamId", "eventId", "eventSyncId", "syncType"];
        self.scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &columns, |reader, row| {
            let (Some(process), Some(correlation)) = (row.integer(0), correlation(row, 1)) else {
                return row.leave_out();
            };
            let correlation = correlation.get();
            // 1 waits for an event, 2 makes a stream wait for one, 3 waits for a stream, 4 for all of them.
            let kind = row.integer(6);
            let stream = row.integer(3).filter(|_| matches!(kind, Some(2 | 3)));
            let event = row.integer(4).filter(|_| matches!(kind, Some(1 | 2)));
            let record = row.integer(5).filter(|_| event.is_some());
            let device = row.integer(2).unwrap_or(0);
            reader.process(process).syncs.push(Sync { correlation, device, stream, event, record });
        })?;
        self.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &columns[..6], |reader, row| {
            let (Some(process), Some(correlation), Some(stream)) =
                (row.integer(0), correlation(row, 1), row.integer(3))
            else {
                return row.leave_out();
            };
            let correlation = correlation.get();
            let (device, event, record) = (row.integer(2).unwrap_or(0), row.integer(4), row.integer(5));
            reader.process(process).events.push(EventRecord { correlation, device, stream, event, record });
        })?;
        Ok(())
    }

    /// Ends what the session cut in threads, and brings their spans in order: while works are not read, since sorting takes
    /// memory, too.
    fn end_threads(&mut self) {
        for process in self.report.processes.values_mut() {
            let mut ends: FxHashMap<u32, i64> = FxHashMap::default();
            for thread in &mut process.threads {
                let ended = thread.spans.iter().map(|span| span.end).filter(|end| *end < CUT);
                let last = thread.spans.iter().map(|span| span.begin).chain(ended).fold(thread.until, i64::max);
                for span in &mut thread.spans {
                    span.end = span.end.min(last).max(span.begin);
                }
                thread.until = last;
                ends.insert(thread.id as u32, last);
                thread.sort();
            }
            for row in process.mpi.iter_mut().filter(|row| row.end == CUT) {
                row.end = ends.get(&row.thread).copied().unwrap_or(row.begin);
            }
        }
    }

    /// Ends the works that the session cut: with the next one of their stream, or else with their process.
    fn end_works(&mut self) {
        for process in self.report.processes.values_mut() {
            if process.works.iter().all(|work| work.end < CUT) {
                continue;
            }
            let ended = process.works.iter().map(|work| if work.end < CUT { work.end } else { work.begin });
            let last = process.threads.iter().map(|thread| thread.until).chain(ended).max().unwrap_or(0);
            let mut begins: Vec<(u32, i64)> = process.works.iter().map(|work| (work.stream, work.begin)).collect();
            begins.sort_unstable();
            for work in process.works.iter_mut().filter(|work| work.end == CUT) {
                let next = begins.partition_point(|begin| *begin <= (work.stream, work.begin));
                let next = begins.get(next).filter(|(stream, _)| *stream == work.stream);
                work.end = next.map_or(last, |(_, begin)| *begin);
            }
        }
    }

    /// What is left to say when all tables are read.
    fn rest(&mut self) {
        let is_unread =
            |table: &&Table| !self.all_names && threads::UCX.contains(&base(&table.name)) || table.name.contains(NCCL);
        let unread = self.database.tables.iter().filter(is_unread);
        // What cannot be read of what is not read does not matter.
        let unread = unread.filter(|table| self.database.has_rows(table).unwrap_or(false));
        self.report.unread = unread.map(|table| base(&table.name).to_owned()).collect();
        self.report.unread.sort();
        if self.database.is_truncated() {
            self.report.note(OddityKind::Truncated, "the file is shorter than its header says".to_owned());
        }
        let report = &mut self.report;
        let mut least = i64::MAX;
        for process in report.processes.values() {
            let spans = process.threads.iter().filter_map(|thread| thread.spans.first()).map(|span| span.begin);
            let begins = spans.chain(process.works.iter().map(|work| work.begin));
            least = begins.chain(process.mpi.iter().map(|row| row.begin)).fold(least, i64::min);
        }
        report.clock.is_normalized = least > NORMALIZED && least < i64::MAX;
    }
}
