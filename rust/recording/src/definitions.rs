//! The definitions of the archive, laid out as Score-P does it.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use whywait_otf2::ArchiveWriter;
use whywait_otf2::enums::{
    Base, CartPeriodicity, CommFlag, GroupFlag, GroupType, GroupTypePre12, InterruptGeneratorMode, IoHandleFlag,
    IoParadigmClass, IoParadigmFlag, IoStatusFlag, LocationGroupType, LocationType, Paradigm, ParadigmClass,
    ParadigmProperty, RegionFlag, RegionRole, RegionType, RmaWinFlag, SystemTreeDomain, Type,
};
use whywait_otf2::records::{
    Attribute, CartCoordinate, CartDimension, CartTopology, ClockProperties, Comm, Definition, Group as GroupRecord,
    InterComm, InterruptGenerator, IoHandle, IoParadigm, IoPreCreatedHandleState, IoRegularFile, Location,
    LocationGroup, LocationGroupProperty, LocationProperty, Paradigm as ParadigmRecord,
    ParadigmProperty as ParadigmPropertyRecord, Region, RmaWin, SystemTreeNode, SystemTreeNodeDomain,
    SystemTreeNodeProperty, TypedValue, UNDEFINED,
};

use crate::clocks::Clocks;
use crate::constructs;
use crate::cores::ranges;
use crate::format::{FAULTS, FILE_STANDARD};
use crate::function_ids::Functions;
use crate::functions::{FUNCTIONS, Function};
use crate::interfaces;
use crate::model::{ADDRESS, ArmciWindow, Model, PARTITION_RANGE, PARTITIONS, PROCESS_ID, Regions, location};
use crate::selection::Selection;
use crate::shmem_windows::{Set, Windows};
use crate::spool::Spool;
use crate::unify::{Group, Unified};

/// Definitions being collected.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// Strings and definitions so far.
    all: whywait_otf2::Catalog,
    /// Regions so far, and those of constructs by name.
    regions: u32,
    constructs: FxHashMap<String, u32>,
    /// Groups of threads and PEs so far.
    teams: u32,
}

/// Ends the name of a region that is a run of tests.
const POLLING: &str = " (polling)";

/// Ends the name of a region that is calls with processes of which nothing was recorded.
const UNRECORDED: &str = " (unrecorded peers)";

impl Catalog {
    /// The id of a string.
    pub(crate) fn string(&mut self, text: &str) -> u32 {
        self.all.string(text)
    }

    /// Adds a definition; its strings are ids of this catalog.
    pub(crate) fn add(&mut self, record: impl Into<Definition>) {
        self.all.add(record);
    }

    /// Defines the regions that occur: MPI functions in the order of the table, then those on call paths.
    pub(crate) fn regions(
        &mut self,
        used: &[bool],
        polled: &BTreeSet<u16>,
        unrecorded: &BTreeSet<u16>,
        selection: &Selection,
        functions: &Functions,
    ) -> Regions {
        let mut mpi = vec![None; FUNCTIONS.len()];
        let mut further = [FxHashMap::default(), FxHashMap::default()];
        // Of functions with several names in the C library.
        let mut named: FxHashMap<&str, u32> = FxHashMap::default();
        let mut count = 0;
        let kept = |(number, function): &(usize, &Function)| {
            used[*number] && !function.is_moment() && selection.keeps(function.name)
        };
        for (number, function) in FUNCTIONS.iter().enumerate().filter(kept) {
            if let Some(region) = named.get(function.name) {
                mpi[number] = Some(*region);
                continue;
            }
            named.insert(function.name, count);
            mpi[number] = Some(count);
            let name = function.region_name();
            let names = (self.string(name), self.string(name));
            self.region(count, names, function.file(), 0, function.role(), function.paradigm());
            count += 1;
            let number = number as u16;
            for ((set, ending), regions) in [(polled, POLLING), (unrecorded, UNRECORDED)].iter().zip(&mut further) {
                if set.contains(&number) {
                    regions.insert(number, count);
                    let name = self.string(&format!("{}{ending}", function.name));
                    self.region(count, (name, names.1), function.file(), 0, function.role(), function.paradigm());
                    count += 1;
                }
            }
        }
        for (number, function) in (count..).zip(&functions.list) {
            let names = (self.string(&function.name), self.string(&function.linkage_name));
            self.region(number, names, &function.file, function.line, RegionRole::FUNCTION, Paradigm::COMPILER);
        }
        self.regions = count + functions.list.len() as u32;
        let [polling, unrecorded] = further;
        Regions { mpi, polling, unrecorded, functions: count, process_id: PROCESS_ID }
    }

    fn region(
        &mut self,
        id: u32,
        (name, canonical_name): (u32, u32),
        file: &str,
        line: u32,
        region_role: RegionRole,
        paradigm: Paradigm,
    ) {
        let source_file = if file.is_empty() { UNDEFINED } else { self.string(file) };
        self.add(Region {
            id,
            name,
            description: 0,
            region_type: RegionType::UNKNOWN,
            source_file,
            begin_line_number: line,
            end_line_number: 0,
            canonical_name,
            region_role,
            paradigm,
            region_flags: RegionFlag::NONE,
        });
    }

    /// Defines processes, their threads and machines.
    pub(crate) fn system(&mut self, spool: &Spool, unified: &Unified, is_shmem: bool) {
        let mpi = self.string("MPI");
        self.add(ParadigmRecord { paradigm: Paradigm::MPI, name: mpi, paradigm_class: ParadigmClass::PROCESS });
        let (name, value_type) = (self.string("ProcessId"), Type::UINT64);
        let description = self.string("Process identifier");
        self.add(Attribute { id: PROCESS_ID, name, value_type, description });
        let (machine, node) = (self.string("machine"), self.string("node"));
        let system = self.string("Linux");
        self.node(0, system, machine, UNDEFINED, SystemTreeDomain::MACHINE);
        let mut hosts: FxHashMap<String, u32> = FxHashMap::default();
        for rank in 0..unified.size {
            let process = spool.ranks.get(&rank);
            let host = process.and_then(|process| process.definitions.start.as_ref()).map(|start| start.host.clone());
            let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| "unknown".into());
            let system_tree_parent = hosts.get(&host).copied().unwrap_or_else(|| {
                let id = hosts.len() as u32 + 1;
                let name = self.string(&host);
                self.node(id, name, node, 0, SystemTreeDomain::SHARED_MEMORY);
                if let Some((online, _)) = process.and_then(|process| process.definitions.cores.as_ref()) {
                    let (name, string_value, value) = self.property("cores", &online.to_string());
                    self.add(SystemTreeNodeProperty { system_tree_node: id, name, string_value, value });
                }
                hosts.insert(host, id);
                id
            });
            let name = self.string(&format!("{} {rank}", if is_shmem { "SHMEM PE" } else { "MPI Rank" }));
            self.add(LocationGroup {
                id: rank,
                name,
                location_group_type: LocationGroupType::PROCESS,
                system_tree_parent,
                creating_location_group: UNDEFINED,
            });
            if let Some((_, cores)) = process.and_then(|process| process.definitions.cores.as_ref()) {
                let (name, string_value, value) = self.property("affinity", &ranges(cores));
                self.add(LocationGroupProperty { location_group: rank, name, string_value, value });
            }
            let mut threads: Vec<u32> =
                process.map(|process| process.threads.keys().copied().collect()).unwrap_or_default();
            if threads.is_empty() {
                threads.push(0);
            }
            for thread in threads {
                let name = if thread == 0 { "Master thread".into() } else { format!("Thread {thread}") };
                let name = self.string(&name);
                self.add(Location {
                    id: location(rank, thread),
                    name,
                    location_type: LocationType::CPU_THREAD,
                    number_of_events: 0,
                    location_group: rank,
                });
            }
        }
    }

    /// Defines what interrupts threads for samples: each period of the clock once, and after these page faults. Returns how periods are numbered.
    pub(crate) fn sampling(&mut self, periods: &BTreeSet<u64>, has_faults: bool) -> BTreeMap<u64, u32> {
        let (name, interrupt_generator_mode) = (self.string("CPU time"), InterruptGeneratorMode::TIME);
        let (base, exponent) = (Base::DECIMAL, -9);
        let numbered = periods.iter().copied().zip(0..);
        let numbered: BTreeMap<u64, u32> = numbered.collect();
        for (period, id) in &numbered {
            let (id, period) = (*id, *period);
            self.add(InterruptGenerator { id, name, interrupt_generator_mode, base, exponent, period });
        }
        if has_faults {
            let (id, name) = (numbered.len() as u32, self.string("page faults"));
            let (interrupt_generator_mode, exponent, period) = (InterruptGeneratorMode::COUNT, 0, FAULTS);
            self.add(InterruptGenerator { id, name, interrupt_generator_mode, base, exponent, period });
        }
        let (name, value_type) = (self.string("address"), Type::STRING);
        let description = self.string("where in the code of a call a sample was");
        self.add(Attribute { id: ADDRESS, name, value_type, description });
        numbered
    }

    /// Defines how partitions of messages are recorded.
    pub(crate) fn partitions(&mut self) {
        let [first, last] = PARTITION_RANGE;
        let all = [
            (PARTITIONS, "partitions", "number of partitions of the message that is begun"),
            (first, "first partition", "first partition that is made ready, or has arrived"),
            (last, "last partition", "last partition that is made ready, or has arrived"),
        ];
        for (id, name, description) in all {
            let (name, description) = (self.string(name), self.string(description));
            self.add(Attribute { id, name, value_type: Type::UINT32, description });
        }
    }

    /// Says by what a thread was sampled.
    pub(crate) fn sampled(&mut self, location: u64, mechanism: &str) {
        let (name, string_value, value) = self.property("sampling", mechanism);
        self.add(LocationProperty { location, name, string_value, value });
    }

    /// The name and the value of a property, the latter in both of its forms.
    fn property(&mut self, name: &str, value: &str) -> (u32, u32, TypedValue) {
        let (name, value) = (self.string(name), self.string(value));
        (name, value, TypedValue { kind: Type::STRING, bits: u64::from(value) })
    }

    fn node(&mut self, id: u32, name: u32, class_name: u32, parent: u32, system_tree_domain: SystemTreeDomain) {
        self.add(SystemTreeNode { id, name, class_name, parent });
        self.add(SystemTreeNodeDomain { system_tree_node: id, system_tree_domain });
    }

    /// Defines the topologies, with the coordinates of the processes that left theirs.
    fn topologies(&mut self, unified: &Unified) {
        let mut dimensions = 0;
        for (id, (&communicator, topology)) in (0..).zip(&unified.topologies) {
            let first = dimensions;
            for (axis, &(size, is_periodic)) in topology.dimensions.iter().enumerate() {
                let name = self.string(&format!("dimension {axis}"));
                let cart_periodicity = if is_periodic { CartPeriodicity::TRUE } else { CartPeriodicity::FALSE };
                self.add(CartDimension { id: dimensions, name, size, cart_periodicity });
                dimensions += 1;
            }
            let sizes: Vec<String> = topology.dimensions.iter().map(|(size, _)| size.to_string()).collect();
            let name = self.string(&format!("MPI_Cartesian_{}", sizes.join("x")));
            self.add(CartTopology { id, name, communicator, cart_dimensions: (first..dimensions).collect() });
            for (&rank, coordinates) in &topology.places {
                self.add(CartCoordinate { cart_topology: id, rank, coordinates: coordinates.clone() });
            }
        }
    }

    /// Defines sets of threads that a paradigm other than MPI makes or uses, and returns their communicators.
    pub(crate) fn teams(&mut self, paradigm: Paradigm, sets: &[Vec<u64>], unified: &Unified) -> Vec<u32> {
        if sets.is_empty() {
            return Vec::new();
        }
        let (name, paradigm_class) = match paradigm {
            Paradigm::OPENMP => ("OpenMP", ParadigmClass::THREAD_FORK_JOIN),
            _ => ("Pthread", ParadigmClass::THREAD_CREATE_WAIT),
        };
        let (name, group_flags) = (self.string(name), GroupFlag::NONE);
        self.add(ParadigmRecord { paradigm, name, paradigm_class });
        let all: BTreeSet<u64> = sets.iter().flatten().copied().collect();
        let places: FxHashMap<u64, u64> = all.iter().copied().zip(0..).collect();
        let (first_group, first_comm) =
            (unified.groups.len() as u32 + self.teams, unified.comms.len() as u32 + self.teams);
        let mut group = |id, group_type_pre12, group_type, members| {
            self.add(GroupRecord { id, name: 0, group_type_pre12, members, group_type, paradigm, group_flags });
        };
        group(first_group, GroupTypePre12::COMM_LOCATIONS, GroupType::COMM_LOCATIONS, all.into_iter().collect());
        for (id, set) in (first_group + 1..).zip(sets) {
            let members = set.iter().map(|location| places[location]).collect();
            group(id, GroupTypePre12::COMM_GROUP, GroupType::COMM_GROUP, members);
        }
        let comms: Vec<u32> = (first_comm..).take(sets.len()).collect();
        for (id, group) in comms.iter().zip(first_group + 1..) {
            self.add(Comm { id: *id, name: 0, group, parent: UNDEFINED, flags: CommFlag::NONE });
        }
        // One group more than communicators.
        self.teams += sets.len() as u32 + 1;
        comms
    }

    /// Defines OpenSHMEM and its windows: of all PEs, of each, and of active sets.
    pub(crate) fn shmem(&mut self, unified: &Unified, sets: &BTreeSet<Set>) -> Windows {
        let first_window = unified.windows.len() as u32;
        let (windows, definitions) = Windows::new(unified.size, first_window, sets);
        let (paradigm, name) = (Paradigm::SHMEM, self.string("OpenSHMEM"));
        self.add(ParadigmRecord { paradigm, name, paradigm_class: ParadigmClass::PROCESS });
        let template = self.string("Active set ${id}");
        for (property, kind, bits) in [
            (ParadigmProperty::RMA_ONLY, Type::UINT8, 1),
            (ParadigmProperty::RMA_WIN_NAME_TEMPLATE, Type::STRING, u64::from(template)),
        ] {
            self.add(ParadigmPropertyRecord { paradigm, property, value: TypedValue { kind, bits } });
        }
        let first_group = unified.groups.len() as u32 + self.teams;
        let first_comm = unified.comms.len() as u32 + self.teams;
        let locations = (0..unified.size).map(|rank| location(rank, 0)).collect();
        self.pes(first_group, GroupTypePre12::COMM_LOCATIONS, GroupType::COMM_LOCATIONS, locations);
        for (place, (name, members)) in (0..).zip(&definitions) {
            let (group, comm) = (first_group + 1 + place, first_comm + place);
            match members {
                Some(members) => {
                    self.pes(group, GroupTypePre12::COMM_GROUP, GroupType::COMM_GROUP, members.clone());
                }
                None => self.pes(group, GroupTypePre12::COMM_SELF, GroupType::COMM_SELF, Vec::new()),
            }
            self.add(Comm { id: comm, name: 0, group, parent: UNDEFINED, flags: CommFlag::NONE });
            let (id, name) = (first_window + place, self.string(name));
            self.add(RmaWin { id, name, comm, flags: RmaWinFlag::CREATE_DESTROY_EVENTS });
        }
        // One group more than communicators.
        self.teams += definitions.len() as u32 + 1;
        windows
    }

    /// Defines the window of ARMCI, which has all processes; `further` is the number of windows that are not MPI's.
    pub(crate) fn armci(&mut self, unified: &Unified, further: u32) -> ArmciWindow {
        let (id, name) = (unified.windows.len() as u32 + further, self.string("ARMCI"));
        self.add(RmaWin { id, name, comm: 0, flags: RmaWinFlag::NONE });
        ArmciWindow { id, size: unified.size }
    }

    fn pes(&mut self, id: u32, group_type_pre12: GroupTypePre12, group_type: GroupType, members: Vec<u64>) {
        let (paradigm, group_flags) = (Paradigm::SHMEM, GroupFlag::GLOBAL_MEMBERS);
        self.add(GroupRecord { id, name: 0, group_type_pre12, members, group_type, paradigm, group_flags });
    }

    /// Defines the constructs of OpenMP of a process.
    pub(crate) fn construct(&mut self, function: &Function, (file, line, short): &(String, u32, String)) -> u32 {
        let name = constructs::region_name(function, short);
        if let Some(id) = self.constructs.get(&name) {
            return *id;
        }
        let id = self.regions;
        self.regions += 1;
        let text = self.string(&name);
        let file = if name.starts_with('!') { file.as_str() } else { function.file() };
        let role = constructs::role(function.name);
        self.region(id, (text, text), file, *line, role, Paradigm::OPENMP);
        self.constructs.insert(name, id);
        id
    }

    /// Defines what processes share.
    pub(crate) fn objects(&mut self, unified: &Unified, model: Model) {
        for (id, group) in (0..).zip(&unified.groups) {
            let (group_type_pre12, group_type, members) = match group {
                Group::Locations => {
                    let all = (0..unified.size).map(|rank| location(rank, 0)).collect();
                    (GroupTypePre12::COMM_LOCATIONS, GroupType::COMM_LOCATIONS, all)
                }
                Group::Itself => (GroupTypePre12::COMM_SELF, GroupType::COMM_SELF, Vec::new()),
                Group::Ranks(ranks) => {
                    let ranks = ranks.iter().map(|rank| u64::from(*rank)).collect();
                    (GroupTypePre12::COMM_GROUP, GroupType::COMM_GROUP, ranks)
                }
            };
            let (paradigm, group_flags) = (Paradigm::MPI, GroupFlag::NONE);
            self.add(GroupRecord { id, name: 0, group_type_pre12, members, group_type, paradigm, group_flags });
        }
        for (id, comm) in (0..).zip(&unified.comms) {
            let name = self.string(&comm.name);
            // Those that exist from the start are not created in the trace.
            let has_events = model == Model::Full && id > 1;
            let flags = if has_events { CommFlag::CREATE_DESTROY_EVENTS } else { CommFlag::NONE };
            let parent = comm.parent.unwrap_or(UNDEFINED);
            match comm.remote {
                None => self.add(Comm { id, name, group: comm.group, parent, flags }),
                Some(group_b) => {
                    // Both groups are in it.
                    let common_communicator = comm.parent.unwrap_or(0);
                    self.add(InterComm { id, name, group_a: comm.group, group_b, common_communicator, flags });
                }
            }
        }
        self.topologies(unified);
        for (id, window) in (0..).zip(&unified.windows) {
            let maker = FUNCTIONS.get(window.maker as usize).map_or("MPI_Win_create", |function| function.name);
            let given = if model == Model::Full { window.name.as_str() } else { "" };
            let name = if given.is_empty() { self.string(&format!("{maker} window")) } else { self.string(given) };
            self.add(RmaWin { id, name, comm: window.comm, flags: RmaWinFlag::CREATE_DESTROY_EVENTS });
        }
        if !unified.files.is_empty() {
            let name = self.string("MPI-IO");
            self.add(IoParadigm {
                id: 0,
                identification: name,
                name,
                io_paradigm_class: IoParadigmClass::PARALLEL,
                io_paradigm_flags: IoParadigmFlag::NONE,
                properties: Vec::new(),
            });
        }
        for (id, path) in (0..).zip(&unified.paths) {
            let name = self.string(path);
            self.add(IoRegularFile { id, name, scope: UNDEFINED });
        }
        for (id, file) in (0..).zip(&unified.files) {
            self.add(IoHandle {
                id,
                name: 0,
                file: file.path,
                io_paradigm: 0,
                io_handle_flags: IoHandleFlag::NONE,
                comm: file.comm,
                parent: UNDEFINED,
            });
        }
        self.posix_files(unified);
    }

    /// Defines files that are none of MPI.
    fn posix_files(&mut self, unified: &Unified) {
        for (number, name, io_paradigm_flags) in interfaces::PARADIGMS {
            if unified.posix.iter().any(|file| file.paradigm == number) {
                let name = self.string(name);
                self.add(IoParadigm {
                    id: interfaces::paradigm(number),
                    identification: name,
                    name,
                    io_paradigm_class: IoParadigmClass::SERIAL,
                    io_paradigm_flags,
                    properties: Vec::new(),
                });
            }
        }
        for (id, file) in (unified.files.len() as u32..).zip(&unified.posix) {
            let is_standard = file.kind == FILE_STANDARD;
            let name = if file.path.is_none() { self.string(&file.name) } else { 0 };
            self.add(IoHandle {
                id,
                name,
                file: file.path.unwrap_or(UNDEFINED),
                io_paradigm: interfaces::paradigm(file.paradigm),
                io_handle_flags: if is_standard { IoHandleFlag::PRE_CREATED } else { IoHandleFlag::NONE },
                comm: UNDEFINED,
                parent: UNDEFINED,
            });
            if is_standard {
                let (mode, status_flags) = (interfaces::standard_mode(&file.name), IoStatusFlag::NONE);
                self.add(IoPreCreatedHandleState { io_handle: id, mode, status_flags });
            }
        }
    }

    /// Hands everything to the archive; the run lasts from the first to the last of these times.
    pub(crate) fn write(self, to: &ArchiveWriter, clocks: &Clocks, (begin, end): (i64, i64)) {
        let ticks = |from: u64| (begin.cast_unsigned().wrapping_sub(from)).cast_signed() as f64;
        let realtime = clocks
            .realtime
            .map(|(at, realtime)| realtime.wrapping_add_signed((ticks(at) / clocks.resolution as f64 * 1e9) as i64));
        let clock = ClockProperties {
            timer_resolution: clocks.resolution,
            global_offset: begin.cast_unsigned(),
            trace_length: end.wrapping_sub(begin).cast_unsigned(),
            realtime_timestamp: realtime.unwrap_or(u64::MAX),
        };
        for record in self.all.finish(clock) {
            to.define(record);
        }
    }
}
