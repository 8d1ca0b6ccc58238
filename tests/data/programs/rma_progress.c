/*
 * One-sided operations on rank 0 while it works: a library that serves them in the target's own MPI calls keeps the origin
 * waiting until rank 0 makes one.
 */
#include <mpi.h>

#include "known.h"

enum { COUNT = 64 };
static const double BUSY = 20, LATER = 2;
static const char *const PROGRESS = "mpi_rma_sync_wait_for_progress+mpi_rma_comm_wait_for_progress";

static int rank;
static double memory[COUNT], local[COUNT];
static MPI_Win window;

static void get_and_unlock(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(local, 8, MPI_DOUBLE, 0, 0, 8, MPI_DOUBLE, window);
    MPI_Win_unlock(0, window);
}

static void get_and_flush(void)
{
    MPI_Win_lock_all(0, window);
    MPI_Get(local, 8, MPI_DOUBLE, 0, 0, 8, MPI_DOUBLE, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock_all(window);
}

static void fetch_and_flush(void)
{
    double one = 1;
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, local, MPI_DOUBLE, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock_all(window);
}

/* The target is at work already when the others access it. */
static void busy_target(void (*access)(void), const char *callpath, int origins)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        work(BUSY);
    } else if (rank <= origins) {
        work(LATER);
        access();
        expect(PROGRESS, callpath, BUSY - LATER, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A target that makes a call in between: whether it serves the origin then or only at the end is up to the library. */
static void calling_target(void)
{
    int found;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        work(BUSY / 2);
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        work(BUSY / 2);
    } else if (rank == 1) {
        work(LATER);
        get_and_flush();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A target that sits in MPI serves at once. */
static void waiting_target(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        work(LATER);
        get_and_unlock();
        expect(PROGRESS, "waiting_target/get_and_unlock", 0, -1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    busy_target(get_and_unlock, "busy_target/get_and_unlock", 1);
    busy_target(get_and_flush, "busy_target/get_and_flush", 1);
    busy_target(fetch_and_flush, "busy_target/fetch_and_flush", 2);
    calling_target();
    waiting_target();
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
