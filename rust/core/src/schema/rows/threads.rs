//! OpenMP and POSIX threads: management, and waiting for other threads.
//!
//! [`super`] says what stands in a row.

macro_rules! threads {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Management of thread teams.
        OmpManagement = "omp_management",
        /// Start of thread teams.
        OmpFork = "omp_fork",
        /// Time in an explicit barrier before the last thread arrived.
        OmpExplicitBarrierWait = "omp_ebarrier_wait" {
            display_name: "Wait at Barrier",
            below: "omp_ebarrier",
            waits_for: "for the last thread of the team",
            look_at: "How the work is distributed over threads: the schedule and its chunk size.",
            class: Some(Class::OmpBarrier),
            document: "openmp",
            source: "Scalasca, Wait at Barrier of OpenMP",
            ..WAIT
        },
        /// Time in an implicit barrier before the last thread arrived.
        OmpImplicitBarrierWait = "omp_ibarrier_wait" {
            display_name: "Wait at Barrier",
            below: "omp_ibarrier",
            waits_for: "for the last thread of the team",
            look_at: "How the work is distributed over threads: the schedule and its chunk size.",
            class: Some(Class::OmpBarrier),
            document: "openmp",
            source: "Scalasca, Wait at Barrier of OpenMP",
            ..WAIT
        },
        /// The part of waiting in an explicit barrier in which no task was ready while the last thread still created one.
        OmpExplicitBarrierStarvation = "omp_ebarrier_starvation" {
            display_name: "Starvation",
            below: "omp_ebarrier_wait",
            part_of: Some(Metric::OmpExplicitBarrierWait),
            document: "threads-tasks",
            source: "whywait",
            ..PART
        },
        /// The part of waiting in an implicit barrier in which no task was ready while the last thread still created one.
        OmpImplicitBarrierStarvation = "omp_ibarrier_starvation" {
            display_name: "Starvation",
            below: "omp_ibarrier_wait",
            part_of: Some(Metric::OmpImplicitBarrierWait),
            document: "threads-tasks",
            source: "whywait",
            ..PART
        },
        /// Time in an explicit barrier, after all threads arrived, in which a thread waited for tasks of others.
        OmpExplicitBarrierTaskWait = "omp_ebarrier_task_wait" {
            display_name: "Wait for Tasks",
            below: "omp_ebarrier",
            waits_for: "for a task that another thread runs",
            look_at: "How long the last tasks run: smaller ones, or the longest first, leave less to wait for.",
            class: Some(Class::Task),
            position: Position::BeforeEnd,
            document: "threads-tasks",
            source: "whywait",
            ..WAIT
        },
        /// Time in an implicit barrier, after all threads arrived, in which a thread waited for tasks of others.
        OmpImplicitBarrierTaskWait = "omp_ibarrier_task_wait" {
            display_name: "Wait for Tasks",
            below: "omp_ibarrier",
            waits_for: "for a task that another thread runs",
            look_at: "How long the last tasks run: smaller ones, or the longest first, leave less to wait for.",
            class: Some(Class::Task),
            position: Position::BeforeEnd,
            document: "threads-tasks",
            source: "whywait",
            ..WAIT
        },
        /// Time in a taskwait construct in which a thread waited for tasks that others run.
        OmpTaskWaitWait = "omp_taskwait_wait" {
            display_name: "Wait for Tasks",
            below: "omp_taskwait",
            waits_for: "for a task that another thread runs",
            look_at: "How long the last tasks run: smaller ones, or the longest first, leave less to wait for.",
            class: Some(Class::Task),
            position: Position::BeforeEnd,
            document: "threads-tasks",
            source: "whywait",
            ..WAIT
        },
        /// Time at the end of a taskgroup construct in which a thread waited for tasks that others run.
        OmpTaskGroupWait = "omp_taskgroup_wait" {
            display_name: "Wait for Task Group",
            below: "omp_synchronization",
            waits_for: "for a task that another thread runs",
            look_at: "How long the last tasks run: smaller ones, or the longest first, leave less to wait for.",
            class: Some(Class::Task),
            position: Position::BeforeEnd,
            document: "threads-tasks",
            source: "whywait",
            ..WAIT
        },
        /// Number of tasks that began, by the thread that began them.
        OmpTasks = "omp_tasks" in Count,
        /// Number of tasks that began on another thread than the one that created them.
        OmpTasksElsewhere = "omp_tasks_elsewhere" in Count,
        /// How often a suspended task went on on another thread.
        OmpTaskMigrations = "omp_task_migrations" in Count,
        /// Time a thread waited for another thread to leave the critical section.
        OmpCriticalContention = "omp_lock_contention_critical" {
            display_name: "Lock Contention",
            below: "omp_critical",
            waits_for: "for other threads to leave the critical section",
            look_at: "How much work is inside the critical section, and whether it must be.",
            class: Some(Class::ThreadLock),
            document: "openmp",
            source: "Scalasca, Lock Contention of OpenMP",
            ..WAIT
        },
        /// Time a thread waited for another thread to release a lock.
        OmpLockContention = "omp_lock_contention_api" {
            display_name: "Lock Contention",
            below: "omp_lock_api",
            waits_for: "for other threads to release a lock",
            look_at: "How long the lock is held, and whether several locks could replace it.",
            class: Some(Class::ThreadLock),
            document: "openmp",
            source: "Scalasca, Lock Contention of OpenMP",
            ..WAIT
        },
        /// Time a thread waited for another thread to leave the block of an ordered construct.
        OmpOrderedWait = "omp_ordered_wait" {
            display_name: "Wait in Order",
            below: "omp_ordered",
            waits_for: "for the thread before it in an ordered construct",
            look_at: "How much work is inside the ordered block, and whether a smaller chunk size helps.",
            class: Some(Class::ThreadLock),
            document: "threads-locks",
            source: "whywait",
            ..WAIT
        },
        /// Time a thread waited for another thread to release the mutex.
        MutexContention = "pthread_lock_contention_mutex_lock" {
            display_name: "Lock Contention",
            below: "pthread_lock_api",
            waits_for: "for other threads to release a mutex",
            look_at: "How long the mutex is held, and whether several could replace it.",
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "openmp",
            source: "Scalasca, Lock Contention of POSIX threads",
            ..WAIT
        },
        /// Time a thread waited for other threads to release a read-write lock.
        ReadWriteContention = "pthread_lock_contention_rwlock" {
            display_name: "Lock Contention (read-write)",
            below: "pthread_lock_api",
            waits_for: "for other threads to release a read-write lock",
            look_at: "How long writers hold the lock, and whether readers must wait for them.",
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "threads-locks",
            source: "whywait",
            ..WAIT
        },
        /// Time a thread waited for another thread to release a spin lock.
        SpinContention = "pthread_lock_contention_spin" {
            display_name: "Lock Contention (spin)",
            below: "pthread_lock_api",
            waits_for: "for another thread to release a spin lock",
            look_at: "How long the lock is held: a thread that spins keeps its core busy.",
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "threads-locks",
            source: "whywait",
            ..WAIT
        },
        /// Time a thread waited for the signal of a condition variable, and for its mutex.
        ConditionContention = "pthread_lock_contention_conditional" {
            display_name: "Lock Contention",
            below: "pthread_conditional",
            waits_for: "for the signal of another thread, and for its mutex",
            look_at: "What the thread that gives the signal does before it, and how many threads are woken at the same time.",
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "openmp",
            source: "Scalasca, Lock Contention of POSIX threads",
            ..WAIT
        },
        /// The part of it after the signal: the thread was awake, but another one owned the mutex.
        ConditionMutexWait = "pthread_cond_mutex_wait" {
            display_name: "Awake without Mutex",
            below: "pthread_lock_contention_conditional",
            position: Position::EndOfWhole,
            part_of: Some(Metric::ConditionContention),
            document: "threads-posix",
            source: "whywait",
            ..PART
        },
        /// Time a thread waited for the signal of a condition variable while its mutex was free.
        LateSignal = "pthread_cond_late_signal" {
            display_name: "Late Signal",
            below: "pthread_conditional",
            waits_for: "for the signal of another thread",
            look_at: "What the thread that gives the signal does before it.",
            is_balanced_away: false,
            class: Some(Class::Signal),
            position: Position::AfterContention,
            document: "threads-posix",
            source: "whywait",
            ..WAIT
        },
        /// Time of waits for a condition variable with a time limit to which no signal came.
        ConditionTimeout = "pthread_cond_timeout",
        /// Time a thread waited for the end of another one.
        JoinWait = "pthread_join_wait" {
            display_name: "Wait for Thread",
            below: "pthread_management",
            waits_for: "for the end of another thread",
            look_at: "What that thread does, and whether the one that waits could do a part of it.",
            class: Some(Class::Join),
            document: "threads-posix",
            source: "whywait",
            ..WAIT
        },
        /// Time in a barrier of POSIX threads before the last thread arrived.
        PthreadBarrierWait = "pthread_barrier_wait" {
            display_name: "Wait at Barrier",
            below: "pthread_barrier",
            waits_for: "for the last thread of the barrier",
            look_at: "How the work is distributed over threads.",
            class: Some(Class::PthreadBarrier),
            document: "threads-posix",
            source: "whywait",
            ..WAIT
        },
    } };
}
