"""Wait states in plain words: what is waited for, and where to look for the reason."""

_LATE_SENDER = "for messages that are sent late"
_BUSY_SENDER = (
    "What the sender does before it sends: more work than its neighbours, or waiting of its own that it hands on."
)
_LAST_ONE = "What keeps the last process busy before this call: more work than others have, or waiting of its own."
_TARGET = "What the target computes meanwhile: it gives the library no chance to make progress."
_LOCK = "How long the lock is held, and how many processes want the same one at the same time."
_EPOCH_TARGET = "What the target does before it posts its window."

# A sentence goes: "8 ranks wait 459 ms in MPI_Waitall <WAITS_FOR>."
WAITS_FOR = {
    "mpi_latesender": _LATE_SENDER,
    "mpi_latereceiver": "for receivers that are not there yet",
    "mpi_barrier_wait": "for the last process to reach the barrier",
    "mpi_wait_nxn": "for the last process to take part",
    "mpi_latebroadcast": "for the root, which comes late",
    "mpi_earlyreduce": "for the last process to contribute",
    "mpi_earlyscan": "for processes with lower ranks",
    "mpi_init_completion": "for others to start up",
    "mpi_finalize_wait": "for the last process to finish",
    "mpi_barrier_completion": "for the barrier to let them go",
    "mpi_nxn_completion": "for the operation to complete after all had come",
    "mpi_rma_wait_at_create": "for the last process to create the window",
    "mpi_rma_wait_at_free": "for the last process to free the window",
    "mpi_rma_wait_at_fence": "for the last process to reach the fence",
    "mpi_rma_sync_late_post": "for targets that expose their windows late",
    "mpi_rma_comm_late_post": "for targets that expose their windows late",
    "mpi_rma_early_wait": "for origins to complete their access",
    "mpi_rma_sync_lock_competition": "for others to release a lock",
    "mpi_rma_comm_lock_competition": "for others to release a lock",
    "mpi_rma_sync_wait_for_progress": "for targets to make progress",
    "mpi_rma_comm_wait_for_progress": "for targets to make progress",
    "omp_ebarrier_wait": "for the last thread of the team",
    "omp_ibarrier_wait": "for the last thread of the team",
    "omp_lock_contention_critical": "for other threads to leave the critical section",
    "omp_lock_contention_api": "for other threads to give a lock back",
    "pthread_lock_contention_mutex_lock": "for other threads to give a mutex back",
    "pthread_lock_contention_conditional": "for other threads to give a mutex back",
}

LOOK_AT = {
    "mpi_latesender": _BUSY_SENDER,
    "mpi_latereceiver": "What the receiver does before it receives; or send without waiting for it (MPI_Isend).",
    "mpi_barrier_wait": _LAST_ONE + " Then, whether the barrier is needed at all.",
    "mpi_wait_nxn": _LAST_ONE,
    "mpi_latebroadcast": "What the root does before it broadcasts.",
    "mpi_earlyreduce": _LAST_ONE,
    "mpi_earlyscan": _LAST_ONE,
    "mpi_init_completion": "The start of the job rather than the program: how evenly processes are launched.",
    "mpi_finalize_wait": "What the last process does at the end alone: output, clean-up, collecting results.",
    "mpi_barrier_completion": "The network and the number of processes on a node; the program itself can do little.",
    "mpi_nxn_completion": "The amount of data and the network; the program can wait later (a non-blocking collective).",
    "mpi_rma_wait_at_create": _LAST_ONE,
    "mpi_rma_wait_at_free": _LAST_ONE,
    "mpi_rma_wait_at_fence": _LAST_ONE + " Then, whether all of them need to meet here: pairs can synchronize alone.",
    "mpi_rma_sync_late_post": _EPOCH_TARGET,
    "mpi_rma_comm_late_post": _EPOCH_TARGET,
    "mpi_rma_early_wait": "What origins do before MPI_Win_complete; or test for completion and work meanwhile.",
    "mpi_rma_sync_lock_competition": _LOCK,
    "mpi_rma_comm_lock_competition": _LOCK,
    "mpi_rma_sync_wait_for_progress": _TARGET,
    "mpi_rma_comm_wait_for_progress": _TARGET,
    "omp_ebarrier_wait": "How the work is spread over threads: the schedule and the size of its pieces.",
    "omp_ibarrier_wait": "How the work is spread over threads: the schedule and the size of its pieces.",
    "omp_lock_contention_critical": "How much is done inside the critical section, and whether it must be.",
    "omp_lock_contention_api": "How long the lock is held, and whether several locks could share its work.",
    "pthread_lock_contention_mutex_lock": "How long the mutex is held, and whether several could share its work.",
    "pthread_lock_contention_conditional": "How many threads are woken at the same time.",
}
for _library in ("shmem", "armci"):
    for _words in (WAITS_FOR, LOOK_AT):
        _words.update(
            {_library + name.removeprefix("mpi"): text for name, text in _words.items() if name.startswith("mpi_")}
        )
WAITS_FOR["shmem_rma_wait_until"] = "for a variable that another process sets late"
LOOK_AT["shmem_rma_wait_until"] = "What the other process does before it sets the variable."
WAITS_FOR["armci_rma_wait_until"] = "for another process to notify it"
LOOK_AT["armci_rma_wait_until"] = "What the other process does before it notifies."
