/*
 * Locks on memory of rank 0, which waits in a barrier meanwhile and so lets the library serve the others. Which call of a
 * contended origin blocks depends on the MPI library: the lock, an operation, or the unlock; what is expected holds for
 * the sum. The holder works inside its epoch, the contender comes a quarter of that time later.
 */
#include <mpi.h>

#include "known.h"

enum { HOLDER = 1, CONTENDER = 2, COUNT = 64 };
static const double HELD = 20, LATER = 5;
static const char *const CONTENTION = "mpi_rma_sync_lock_competition+mpi_rma_comm_lock_competition";

static int rank, size;
static double local[COUNT];
static MPI_Win window;

/* An operation that takes the lock for sure, even where MPI_Win_lock returns before it is granted. */
static void touch(void)
{
    MPI_Get(local, 8, MPI_DOUBLE, 0, 0, 8, MPI_DOUBLE, window);
    MPI_Win_flush(0, window);
}

static void hold(int type)
{
    MPI_Win_lock(type, 0, 0, window);
    touch();
    work(HELD);
    MPI_Win_unlock(0, window);
}

static void contend(int type)
{
    work(LATER);
    MPI_Win_lock(type, 0, 0, window);
    MPI_Put(local, 8, MPI_DOUBLE, 0, 8 * rank, 8, MPI_DOUBLE, window);
    MPI_Win_unlock(0, window);
}

static void exclusive(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == HOLDER)
        hold(MPI_LOCK_EXCLUSIVE);
    if (rank == CONTENDER) {
        contend(MPI_LOCK_EXCLUSIVE);
        expect(CONTENTION, "exclusive/contend", HELD - LATER, HOLDER);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void shared_against_exclusive(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == HOLDER)
        hold(MPI_LOCK_SHARED);
    if (rank == CONTENDER) {
        contend(MPI_LOCK_EXCLUSIVE);
        expect(CONTENTION, "shared_against_exclusive/contend", HELD - LATER, HOLDER);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Two that share do not compete. */
static void shared(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == HOLDER)
        hold(MPI_LOCK_SHARED);
    if (rank == CONTENDER) {
        contend(MPI_LOCK_SHARED);
        expect(CONTENTION, "shared/contend", 0, -1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Three in a row: ranks 1, 2 and 3 hold it one after the other, and each waits for the one before. */
static void queue(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) {
        work(LATER * (rank - 1));
        hold(MPI_LOCK_EXCLUSIVE);
        expect(CONTENTION, "queue/hold", (HELD - LATER) * (rank - 1), rank - 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Locked for all, with atomics, requests and every flush: nobody waits for anybody. */
static void lock_all(void)
{
    double one = 1, zero = 0, result;
    MPI_Request requests[3];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &result, MPI_DOUBLE, 0, 40, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, 41, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_flush_local(0, window);
    MPI_Win_flush_all(window);
    MPI_Rput(local, 4, MPI_DOUBLE, 0, 8 * rank, 4, MPI_DOUBLE, window, &requests[0]);
    MPI_Rget(local + 8, 4, MPI_DOUBLE, 0, 8 * rank + 4, 4, MPI_DOUBLE, window, &requests[1]);
    MPI_Raccumulate(&one, 1, MPI_DOUBLE, 0, 42, 1, MPI_DOUBLE, MPI_SUM, window, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Get_accumulate(&zero, 1, MPI_DOUBLE, &result, 1, MPI_DOUBLE, 0, 42, 1, MPI_DOUBLE, MPI_NO_OP, window);
    MPI_Win_sync(window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(CONTENTION, "lock_all", 0, -1);
}

/* A compare-and-swap spin lock: no lock of MPI, but the traffic of one. */
static void spin_lock(void)
{
    long free_ = 0, mine = rank + 1, seen;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    if (rank == HOLDER || rank == CONTENDER) {
        do {
            MPI_Compare_and_swap(&mine, &free_, &seen, MPI_LONG, 0, 43, window);
            MPI_Win_flush(0, window);
            work(1);
        } while (seen != free_);
        work(LATER);
        MPI_Put(&free_, 1, MPI_LONG, 0, 43, 1, MPI_LONG, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    double *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(COUNT * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < COUNT; i++)
        memory[i] = 0;
    exclusive();
    shared_against_exclusive();
    shared();
    queue();
    lock_all();
    spin_lock();
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
