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
            paradigm: Paradigm::OpenMp,
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
            paradigm: Paradigm::OpenMp,
            class: Some(Class::OmpBarrier),
            document: "openmp",
            source: "Scalasca, Wait at Barrier of OpenMP",
            ..WAIT
        },
        /// Time a thread waited for another thread to leave the critical section.
        OmpCriticalContention = "omp_lock_contention_critical" {
            display_name: "Lock Contention",
            below: "omp_critical",
            waits_for: "for other threads to leave the critical section",
            look_at: "How much work is inside the critical section, and whether it must be.",
            paradigm: Paradigm::OpenMp,
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
            paradigm: Paradigm::OpenMp,
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
            paradigm: Paradigm::OpenMp,
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
            paradigm: Paradigm::Pthread,
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
            paradigm: Paradigm::Pthread,
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
            paradigm: Paradigm::Pthread,
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "threads-locks",
            source: "whywait",
            ..WAIT
        },
        /// Time a thread waited for the mutex of a condition variable.
        ConditionContention = "pthread_lock_contention_conditional" {
            display_name: "Lock Contention",
            below: "pthread_conditional",
            waits_for: "for other threads to release a mutex",
            look_at: "How many threads are woken at the same time.",
            paradigm: Paradigm::Pthread,
            is_balanced_away: false,
            class: Some(Class::ThreadLock),
            document: "openmp",
            source: "Scalasca, Lock Contention of POSIX threads",
            ..WAIT
        },
    } };
}
