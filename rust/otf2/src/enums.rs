//! Named numbers of the format. A number without a name is carried through unchanged.

/// Declares newtypes over the numbers on disk, with a constant and a name for each known value.
macro_rules! numbers {
    ($( $(#[$doc:meta])* $kind:ident $name:ident($width:ident) { $( $value:ident = $number:literal ),* $(,)? } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub $width);

            impl $name {
                $(
                    #[doc = concat!("`", stringify!($value), "` = ", stringify!($number))]
                    pub const $value: Self = Self($number);
                )*

                /// Every value that has a name.
                pub const NAMED: &[Self] = &[$(Self::$value),*];

                /// Name of the value, if it has one.
                pub const fn name(self) -> Option<&'static str> {
                    match self.0 {
                        $($number => Some(stringify!($value)),)*
                        _ => None,
                    }
                }
            }

            numbers!(@$kind $name);
        )*
    };
    (@values $name:ident) => {};
    (@flags $name:ident) => {
        impl $name {
            /// Whether all bits of `flags` are set.
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
        }
    };
}

numbers! {
    /// Type of an attribute, property or metric value.
    values Type(u8) {
        NONE = 0, UINT8 = 1, UINT16 = 2, UINT32 = 3, UINT64 = 4, INT8 = 5, INT16 = 6, INT32 = 7,
        INT64 = 8, FLOAT = 9, DOUBLE = 10, STRING = 11, ATTRIBUTE = 12, LOCATION = 13, REGION = 14,
        GROUP = 15, METRIC = 16, COMM = 17, PARAMETER = 18, RMA_WIN = 19, SOURCE_CODE_LOCATION = 20,
        CALLING_CONTEXT = 21, INTERRUPT_GENERATOR = 22, IO_FILE = 23, IO_HANDLE = 24, LOCATION_GROUP
        = 25,
    }

    /// Kind of definition whose ids a mapping table translates.
    values MappingType(u8) {
        STRING = 0, ATTRIBUTE = 1, LOCATION = 2, REGION = 3, GROUP = 4, METRIC = 5, COMM = 6,
        PARAMETER = 7, RMA_WIN = 8, SOURCE_CODE_LOCATION = 9, CALLING_CONTEXT = 10,
        INTERRUPT_GENERATOR = 11, IO_FILE = 12, IO_HANDLE = 13, LOCATION_GROUP = 14,
    }

    /// Programming model.
    values Paradigm(u8) {
        UNKNOWN = 0, USER = 1, COMPILER = 2, OPENMP = 3, MPI = 4, CUDA = 5, MEASUREMENT_SYSTEM = 6,
        PTHREAD = 7, HMPP = 8, OMPSS = 9, HARDWARE = 10, GASPI = 11, UPC = 12, SHMEM = 13, WINTHREAD
        = 14, QTTHREAD = 15, ACETHREAD = 16, TBBTHREAD = 17, OPENACC = 18, OPENCL = 19, MTAPI = 20,
        SAMPLING = 21, NONE = 22, HIP = 23, KOKKOS = 24, OPENMP_TARGET = 25,
    }

    /// How a paradigm creates its locations.
    values ParadigmClass(u8) {
        PROCESS = 0, THREAD_FORK_JOIN = 1, THREAD_CREATE_WAIT = 2, ACCELERATOR = 3,
    }

    /// Property of a paradigm.
    values ParadigmProperty(u8) {
        COMM_NAME_TEMPLATE = 0, RMA_WIN_NAME_TEMPLATE = 1, RMA_ONLY = 2,
    }

    /// How an archive is laid out on disk.
    values FileSubstrate(u8) {
        UNDEFINED = 0, POSIX = 1, SION = 2, NONE = 3,
    }

    /// Compression of the files of an archive.
    values Compression(u8) {
        UNDEFINED = 0, NONE = 1, ZLIB = 2,
    }

    /// Domain of a node of the system tree.
    values SystemTreeDomain(u8) {
        MACHINE = 0, SHARED_MEMORY = 1, NUMA = 2, SOCKET = 3, CACHE = 4, CORE = 5, PU = 6,
        ACCELERATOR_DEVICE = 7, NETWORKING_DEVICE = 8,
    }

    /// Type of a location group.
    values LocationGroupType(u8) {
        UNKNOWN = 0, PROCESS = 1, ACCELERATOR = 2,
    }

    /// Type of a location.
    values LocationType(u8) {
        UNKNOWN = 0, CPU_THREAD = 1, ACCELERATOR_STREAM = 2, METRIC = 3,
    }

    /// Role of a region.
    values RegionRole(u8) {
        UNKNOWN = 0, FUNCTION = 1, WRAPPER = 2, LOOP = 3, CODE = 4, PARALLEL = 5, SECTIONS = 6,
        SECTION = 7, WORKSHARE = 8, SINGLE = 9, SINGLE_SBLOCK = 10, MASTER = 11, CRITICAL = 12,
        CRITICAL_SBLOCK = 13, ATOMIC = 14, BARRIER = 15, IMPLICIT_BARRIER = 16, FLUSH = 17, ORDERED
        = 18, ORDERED_SBLOCK = 19, TASK = 20, TASK_CREATE = 21, TASK_WAIT = 22, COLL_ONE2ALL = 23,
        COLL_ALL2ONE = 24, COLL_ALL2ALL = 25, COLL_OTHER = 26, FILE_IO = 27, POINT2POINT = 28, RMA =
        29, DATA_TRANSFER = 30, ARTIFICIAL = 31, THREAD_CREATE = 32, THREAD_WAIT = 33, TASK_UNTIED =
        34, ALLOCATE = 35, DEALLOCATE = 36, REALLOCATE = 37, FILE_IO_METADATA = 38, CANCEL = 39,
        KERNEL = 40,
    }

    /// Properties of a region.
    flags RegionFlag(u32) {
        NONE = 0, DYNAMIC = 1, PHASE = 2,
    }

    /// Type of the members of a group.
    values GroupType(u8) {
        UNKNOWN = 0, LOCATIONS = 1, REGIONS = 2, METRIC = 3, COMM_LOCATIONS = 4, COMM_GROUP = 5,
        COMM_SELF = 6, COMM_LOCATION_GROUPS = 7,
    }

    /// Properties of a group.
    flags GroupFlag(u32) {
        NONE = 0, GLOBAL_MEMBERS = 1,
    }

    /// Base of a scale factor.
    values Base(u8) {
        BINARY = 0, DECIMAL = 1,
    }

    /// When a metric is recorded.
    values MetricOccurrence(u8) {
        SYNCHRONOUS_STRICT = 0, SYNCHRONOUS = 1, ASYNCHRONOUS = 2,
    }

    /// Source of a metric.
    values MetricType(u8) {
        OTHER = 0, PAPI = 1, RUSAGE = 2, USER = 3,
    }

    /// Scope of a metric instance.
    values MetricScope(u8) {
        LOCATION = 0, LOCATION_GROUP = 1, SYSTEM_TREE_NODE = 2, GROUP = 3,
    }

    /// Kind of location that records a metric class.
    values RecorderKind(u8) {
        UNKNOWN = 0, ABSTRACT = 1, CPU = 2, GPU = 3,
    }

    /// Type of a parameter.
    values ParameterType(u8) {
        STRING = 0, INT64 = 1, UINT64 = 2,
    }

    /// Whether a dimension of a topology wraps around.
    values CartPeriodicity(u8) {
        FALSE = 0, TRUE = 1,
    }

    /// What an interrupt generator counts.
    values InterruptGeneratorMode(u8) {
        TIME = 0, COUNT = 1,
    }

    /// Whether an I/O paradigm is parallel.
    values IoParadigmClass(u8) {
        SERIAL = 0, PARALLEL = 1,
    }

    /// Properties of an I/O paradigm.
    flags IoParadigmFlag(u32) {
        NONE = 0, OS = 1,
    }

    /// Property of an I/O paradigm.
    values IoParadigmProperty(u8) {
        VERSION = 0,
    }

    /// Properties of an I/O handle.
    flags IoHandleFlag(u32) {
        NONE = 0, PRE_CREATED = 1, ALL_PROXY = 2,
    }

    /// Access mode of an I/O handle.
    values IoAccessMode(u8) {
        READ_ONLY = 0, WRITE_ONLY = 1, READ_WRITE = 2, EXECUTE_ONLY = 3, SEARCH_ONLY = 4,
    }

    /// Status of an I/O handle.
    flags IoStatusFlag(u32) {
        NONE = 0, CLOSE_ON_EXEC = 1, APPEND = 2, NON_BLOCKING = 4, ASYNC = 8, SYNC = 16, DATA_SYNC =
        32, AVOID_CACHING = 64, NO_ACCESS_TIME = 128, DELETE_ON_CLOSE = 256,
    }

    /// Properties of a communicator.
    flags CommFlag(u32) {
        NONE = 0, CREATE_DESTROY_EVENTS = 1,
    }

    /// Properties of an RMA window.
    flags RmaWinFlag(u32) {
        NONE = 0, CREATE_DESTROY_EVENTS = 1,
    }

    /// Whether the measurement is on.
    values MeasurementMode(u8) {
        ON = 1, OFF = 2,
    }

    /// Collective operation.
    values CollectiveOp(u8) {
        BARRIER = 0, BCAST = 1, GATHER = 2, GATHERV = 3, SCATTER = 4, SCATTERV = 5, ALLGATHER = 6,
        ALLGATHERV = 7, ALLTOALL = 8, ALLTOALLV = 9, ALLTOALLW = 10, ALLREDUCE = 11, REDUCE = 12,
        REDUCE_SCATTER = 13, SCAN = 14, EXSCAN = 15, REDUCE_SCATTER_BLOCK = 16, CREATE_HANDLE = 17,
        DESTROY_HANDLE = 18, ALLOCATE = 19, DEALLOCATE = 20, CREATE_HANDLE_AND_ALLOCATE = 21,
        DESTROY_HANDLE_AND_DEALLOCATE = 22,
    }

    /// Special values of the root of a collective operation.
    values CollectiveRoot(u32) {
        NONE = 0xffff_ffff, SELF = 0xffff_fffe, THIS_GROUP = 0xffff_fffd,
    }

    /// Kind of an RMA synchronization.
    values RmaSyncType(u8) {
        MEMORY = 0, NOTIFY_IN = 1, NOTIFY_OUT = 2,
    }

    /// What an RMA operation synchronizes.
    flags RmaSyncLevel(u32) {
        NONE = 0, PROCESS = 1, MEMORY = 2,
    }

    /// Kind of a lock.
    values LockType(u8) {
        EXCLUSIVE = 0, SHARED = 1,
    }

    /// Atomic RMA operation.
    values RmaAtomicType(u8) {
        ACCUMULATE = 0, INCREMENT = 1, TEST_AND_SET = 2, COMPARE_AND_SWAP = 3, SWAP = 4,
        FETCH_AND_ADD = 5, FETCH_AND_INCREMENT = 6, FETCH_AND_ACCUMULATE = 7,
    }

    /// Special values of the generation number of a task.
    values TaskGenerationNumber(u32) {
        TASK_GENERATION_NUMBER_IMPLICIT = 0,
    }

    /// How an I/O handle is created.
    flags IoCreationFlag(u32) {
        NONE = 0, CREATE = 1, TRUNCATE = 2, DIRECTORY = 4, EXCLUSIVE = 8, NO_CONTROLLING_TERMINAL =
        16, NO_FOLLOW = 32, PATH = 64, TEMPORARY_FILE = 128, LARGEFILE = 256, NO_SEEK = 512, UNIQUE
        = 1024,
    }

    /// Origin of a seek.
    values IoSeekOption(u8) {
        FROM_START = 0, FROM_CURRENT = 1, FROM_END = 2, DATA = 3, HOLE = 4,
    }

    /// Direction of an I/O operation.
    values IoOperationMode(u8) {
        READ = 0, WRITE = 1, FLUSH = 2,
    }

    /// Properties of an I/O operation.
    flags IoOperationFlag(u32) {
        NONE = 0, NON_BLOCKING = 1, COLLECTIVE = 2,
    }

    /// Type of a group in traces older than OTF2 1.2.
    values GroupTypePre12(u8) {
        UNKNOWN = 0, LOCATIONS = 1, REGIONS = 2, METRIC = 3, COMM_GROUP = 4, COMM_SELF = 5, COMM_LOCATIONS = 6,
    }

    /// Type of a region in traces older than OTF2 1.1.
    values RegionType(u8) {
        UNKNOWN = 0, FUNCTION = 1, LOOP = 2, USER_REGION = 3, FILE_IO = 4, OMP_PARALLEL = 5, OMP_LOOP = 6,
        OMP_SECTIONS = 7, OMP_SECTION = 8, OMP_WORKSHARE = 9, OMP_SINGLE = 10, OMP_MASTER = 11, OMP_CRITICAL = 12,
        OMP_ATOMIC = 13, OMP_BARRIER = 14, OMP_IMPLICIT_BARRIER = 15, OMP_FLUSH = 16, OMP_CRITICAL_SBLOCK = 17,
        OMP_SINGLE_SBLOCK = 18, OMP_WRAPPER = 19, OMP_TASK = 20, OMP_TASK_WAIT = 21, MPI_COLL_BARRIER = 22,
        MPI_COLL_ONE2ALL = 23, MPI_COLL_ALL2ONE = 24, MPI_COLL_ALL2ALL = 25, MPI_COLL_OTHER = 26, PHASE = 27,
        DYNAMIC = 28, DYNAMIC_PHASE = 29, DYNAMIC_FUNCTION = 30, DYNAMIC_LOOP = 31, DYNAMIC_LOOP_PHASE = 32,
        OMP_TASK_CREATE = 33, OMP_ORDERED = 34, OMP_ORDERED_SBLOCK = 35,
    }

    /// How the value of a metric relates to time and to earlier values.
    values MetricMode(u8) {
        ACCUMULATED_START = 0x00, ACCUMULATED_POINT = 0x10, ACCUMULATED_LAST = 0x20, ACCUMULATED_NEXT = 0x30,
        ABSOLUTE_POINT = 0x11, ABSOLUTE_LAST = 0x21, ABSOLUTE_NEXT = 0x31,
        RELATIVE_POINT = 0x12, RELATIVE_LAST = 0x22, RELATIVE_NEXT = 0x32,
    }

    /// Kind of definition that an id refers to. The numbers are not on disk.
    values Space(u8) {
        STRING = 0, IO_PARADIGM = 1, ATTRIBUTE = 2, SYSTEM_TREE_NODE = 3, LOCATION_GROUP = 4, LOCATION = 5,
        REGION = 6, CALLSITE = 7, CALLPATH = 8, GROUP = 9, METRIC_MEMBER = 10, METRIC = 11, COMM = 12,
        PARAMETER = 13, RMA_WIN = 14, CART_DIMENSION = 15, CART_TOPOLOGY = 16, SOURCE_CODE_LOCATION = 17,
        CALLING_CONTEXT = 18, INTERRUPT_GENERATOR = 19, IO_FILE = 20, IO_HANDLE = 21,
    }
}
