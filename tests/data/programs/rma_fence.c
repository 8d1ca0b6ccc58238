/*
 * Fences: windows made, used and freed, with one late rank at each step.
 */
#include <mpi.h>

#include "known.h"

enum { SLOW = 2, COUNT = 64 };
static const double LATE = 20;

static int rank, size;
static double memory[COUNT], local[COUNT];

static void delay(int slow)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == slow)
        work(LATE);
}

static MPI_Win late_at_create(void)
{
    MPI_Win window;
    delay(SLOW);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    expect("mpi_rma_wait_at_create", "late_at_create/MPI_Win_create", rank == SLOW ? 0 : LATE, SLOW);
    return window;
}

static void late_at_fence(MPI_Win window)
{
    MPI_Win_fence(0, window);
    delay(SLOW);
    MPI_Put(local, 8, MPI_DOUBLE, (rank + 1) % size, 0, 8, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
}

/* All kinds of operations end with a fence. */
static void every_operation(MPI_Win window)
{
    double one = 1, result[3];
    int next = (rank + 1) % size;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(local, 4, MPI_DOUBLE, next, 0, 4, MPI_DOUBLE, window);
    MPI_Get(local + 8, 8, MPI_DOUBLE, next, 8, 8, MPI_DOUBLE, window);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, next, 16, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Get_accumulate(&one, 1, MPI_DOUBLE, &result[0], 1, MPI_DOUBLE, next, 17, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &result[1], MPI_DOUBLE, next, 18, MPI_SUM, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

static void rounds(MPI_Win window)
{
    enum { ROUNDS = 10 };
    MPI_Win_fence(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        work(rank == SLOW ? LATE / 4 : LATE / 10);
        MPI_Put(local, 8, MPI_DOUBLE, (rank + 1) % size, 0, 8, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
    }
    expect("mpi_rma_wait_at_fence", "rounds/MPI_Win_fence", rank == SLOW ? 0 : ROUNDS * LATE * 3 / 20, SLOW);
}

/* A window on ranks 3 and 1, in this order. */
static void small_window(void)
{
    MPI_Comm odd;
    MPI_Win window;
    double *shared;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &odd);
    if (rank % 2) {
        MPI_Win_allocate(sizeof memory, sizeof *memory, MPI_INFO_NULL, odd, &shared, &window);
        MPI_Win_fence(0, window);
    }
    delay(3);
    if (rank % 2) {
        MPI_Put(local, 1, MPI_DOUBLE, rank == 1 ? 0 : 1, 0, 1, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
    }
    MPI_Comm_free(&odd);
}

static void late_at_free(MPI_Win window)
{
    delay(SLOW);
    MPI_Win_free(&window);
    expect("mpi_rma_wait_at_free", "late_at_free/MPI_Win_free", rank == SLOW ? 0 : LATE, SLOW);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win window = late_at_create();
    late_at_fence(window);
    expect("mpi_rma_wait_at_fence", "late_at_fence/MPI_Win_fence", rank == SLOW ? 0 : LATE, SLOW);
    every_operation(window);
    rounds(window);
    small_window();
    expect("mpi_rma_wait_at_fence", "small_window/MPI_Win_fence", rank == 1 ? LATE : 0, 3);
    late_at_free(window);
    MPI_Finalize();
    return 0;
}
