//! Constructs of OpenMP: which tables and rows are of which.
//!
//! No export with these tables has been seen: they are read as NVIDIA's schema describes them.

use whywait_devices::Region;
use whywait_otf2::enums::{Paradigm, RegionRole};

/// A construct. Of two that are equal in time, the earlier one is around the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Construct {
    /// A parallel region, on the thread that forks.
    Parallel,
    /// The part of another thread in it, which is what it does there.
    Part,
    Loop,
    Sections,
    Single,
    Workshare,
    Master,
    Reduction,
    /// An explicit task that runs.
    Task,
    TaskCreate,
    Barrier,
    ImplicitBarrier,
    TaskWait,
    TaskGroup,
    /// Waiting for a lock, a critical section, an atomic update, or one's turn.
    Lock,
    Critical,
    Atomic,
    Ordered,
    /// What is done in such a section.
    Section,
    /// A lock is given back.
    Release,
    /// A thread goes on with another task.
    Switch,
}

/// Whether a task that a thread leaves with a status is complete.
pub(crate) const fn completes(status: Option<i64>) -> bool {
    matches!(status, Some(1 | 3 | 4 | 5 | 8))
}

/// A table of constructs.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The column of the task, or of what is waited for.
    pub(crate) object: &'static str,
    /// Which construct a row is by its kind.
    pub(crate) construct: fn(Option<i64>) -> Option<Construct>,
}

impl Table {
    const fn new(name: &'static str, object: &'static str, construct: fn(Option<i64>) -> Option<Construct>) -> Self {
        Self { name, object, construct }
    }
}

/// The tables of OpenMP that are read.
pub(crate) const TABLES: [Table; 12] = [
    Table::new("OPENMP_EVENT_KIND_PARALLEL", "", |_| Some(Construct::Parallel)),
    Table::new("OPENMP_EVENT_KIND_TASK", "taskId", |kind| Some(Construct::of_task(kind))),
    Table::new("OPENMP_EVENT_KIND_TASK_CREATE", "newTaskId", |_| Some(Construct::TaskCreate)),
    Table::new("OPENMP_EVENT_KIND_TASK_SCHEDULE", "nextTaskId", |_| Some(Construct::Switch)),
    Table::new("OPENMP_EVENT_KIND_SYNC_REGION", "", Construct::of_synchronization),
    // The waiting inside of these, which counts where they are not recorded.
    Table::new("OPENMP_EVENT_KIND_SYNC_REGION_WAIT", "", Construct::of_synchronization),
    Table::new("OPENMP_EVENT_KIND_WORKSHARE", "", |kind| Some(Construct::of_work(kind))),
    Table::new("OPENMP_EVENT_KIND_MASTER", "", |_| Some(Construct::Master)),
    Table::new("OPENMP_EVENT_KIND_REDUCTION", "", |_| Some(Construct::Reduction)),
    Table::new("OPENMP_EVENT_KIND_MUTEX_WAIT", "waitId", Construct::of_mutex),
    Table::new("OPENMP_EVENT_KIND_CRITICAL_SECTION", "waitId", |_| Some(Construct::Section)),
    Table::new("OPENMP_EVENT_KIND_MUTEX_RELEASED", "waitId", Construct::of_release),
];

impl Construct {
    /// A synchronization by its kind in the schema.
    const fn of_synchronization(kind: Option<i64>) -> Option<Self> {
        match kind {
            Some(1 | 3 | 4) => Some(Self::Barrier),
            Some(2 | 8..=10) => Some(Self::ImplicitBarrier),
            Some(5) => Some(Self::TaskWait),
            Some(6) => Some(Self::TaskGroup),
            _ => None,
        }
    }

    /// A way to share work by its kind in the schema.
    const fn of_work(kind: Option<i64>) -> Self {
        match kind {
            Some(1 | 6) => Self::Loop,
            Some(2) => Self::Sections,
            Some(3 | 4) => Self::Single,
            _ => Self::Workshare,
        }
    }

    /// What is waited for by its kind in the schema. Who only tests a lock does not wait.
    const fn of_mutex(kind: Option<i64>) -> Option<Self> {
        match kind {
            Some(1 | 3) => Some(Self::Lock),
            Some(5) => Some(Self::Critical),
            Some(6) => Some(Self::Atomic),
            Some(7) => Some(Self::Ordered),
            _ => None,
        }
    }

    /// What is given back by its kind in the schema: sections end where they are recorded to.
    const fn of_release(kind: Option<i64>) -> Option<Self> {
        match kind {
            Some(1..=4) => Some(Self::Release),
            _ => None,
        }
    }

    /// A task by its kind in the schema: the initial one is the program, an implicit one is the part of a thread.
    const fn of_task(kind: Option<i64>) -> Self {
        match kind {
            Some(3 | 4) => Self::Task,
            _ => Self::Part,
        }
    }

    /// Whether a thread only waits in it, so that calls of the system inside are the library's own.
    pub(crate) const fn waits(self) -> bool {
        use Construct::{Atomic, Barrier, Critical, ImplicitBarrier, Lock, Ordered, TaskGroup, TaskWait};
        matches!(self, Barrier | ImplicitBarrier | TaskWait | TaskGroup | Lock | Critical | Atomic | Ordered)
    }

    pub(crate) const fn is_mutex(self) -> bool {
        matches!(self, Self::Lock | Self::Critical | Self::Atomic | Self::Ordered)
    }

    /// Its region; `name` is what the report calls it.
    pub(crate) fn region(self, name: &str) -> Region {
        let (role, own) = match self {
            Self::Parallel | Self::Part => (RegionRole::PARALLEL, "parallel"),
            Self::Loop => (RegionRole::LOOP, "loop"),
            Self::Sections => (RegionRole::SECTIONS, "sections"),
            Self::Single => (RegionRole::SINGLE, "single"),
            Self::Workshare => (RegionRole::WORKSHARE, "workshare"),
            Self::Master => (RegionRole::MASTER, "master"),
            Self::Reduction => (RegionRole::CODE, "reduction"),
            Self::Task => (RegionRole::TASK, "task"),
            Self::TaskCreate => (RegionRole::TASK_CREATE, "create task"),
            Self::Barrier => (RegionRole::BARRIER, "barrier"),
            Self::ImplicitBarrier => (RegionRole::IMPLICIT_BARRIER, "implicit barrier"),
            Self::TaskWait => (RegionRole::TASK_WAIT, "taskwait"),
            Self::TaskGroup => (RegionRole::TASK_WAIT, "taskgroup"),
            Self::Lock => (RegionRole::FUNCTION, "omp_set_lock"),
            Self::Critical => (RegionRole::CRITICAL, "critical"),
            Self::Atomic => (RegionRole::ATOMIC, "atomic"),
            Self::Ordered => (RegionRole::ORDERED, "ordered"),
            Self::Section => (RegionRole::CRITICAL_SBLOCK, "critical section"),
            Self::Release => (RegionRole::FUNCTION, "omp_unset_lock"),
            Self::Switch => (RegionRole::FUNCTION, "switch"),
        };
        // An analysis knows these by their names.
        let is_named = matches!(self, Self::TaskGroup | Self::Lock | Self::Release);
        let name = if name.is_empty() || is_named { own } else { name };
        Region::new(name.to_owned(), Paradigm::OPENMP, role)
    }
}
