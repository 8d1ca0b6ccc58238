/*
 * Post, start, complete, wait. Which call of an origin blocks until the target has posted depends on the MPI library: the
 * start, the complete, or an operation between them; what is expected holds for the sum.
 */
#include <mpi.h>

#include "known.h"

enum { COUNT = 64 };
static const double LATE = 20;
static const char *const LATE_POST = "mpi_rma_sync_late_post+mpi_rma_comm_late_post";

static int rank, size;
static double memory[COUNT], local[COUNT];
static MPI_Win window;

static MPI_Group group_of(int n, const int ranks[])
{
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

/* Rank 1 exposes its memory late: rank 0 waits for the post. */
static void late_post(void)
{
    MPI_Group partner = group_of(1, (int[]){1 - rank % 2});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_start(partner, 0, window);
        MPI_Put(local, 8, MPI_DOUBLE, 1, 0, 8, MPI_DOUBLE, window);
        MPI_Win_complete(window);
        expect(LATE_POST, "late_post", LATE, 1);
    } else if (rank == 1) {
        work(LATE);
        MPI_Win_post(partner, 0, window);
        MPI_Win_wait(window);
    }
    MPI_Group_free(&partner);
}

/* Rank 0 works before its operation: rank 1 waits for the access, and nobody could have completed earlier. */
static void early_wait(void)
{
    MPI_Group partner = group_of(1, (int[]){1 - rank % 2});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_start(partner, 0, window);
        work(LATE);
        MPI_Put(local, 8, MPI_DOUBLE, 1, 0, 8, MPI_DOUBLE, window);
        MPI_Win_complete(window);
    } else if (rank == 1) {
        MPI_Win_post(partner, 0, window);
        MPI_Win_wait(window);
        expect("mpi_rma_early_wait", "early_wait/MPI_Win_wait", LATE, 0);
        expect("mpi_rma_late_complete", "early_wait/MPI_Win_wait", 0, -1);
    }
    MPI_Group_free(&partner);
}

/* Rank 0 works after its operation: rank 1 waits just as long, but an earlier complete would have spared it. */
static void late_complete(void)
{
    MPI_Group partner = group_of(1, (int[]){1 - rank % 2});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_start(partner, 0, window);
        MPI_Get(local, 8, MPI_DOUBLE, 1, 0, 8, MPI_DOUBLE, window);
        work(LATE);
        MPI_Win_complete(window);
    } else if (rank == 1) {
        MPI_Win_post(partner, 0, window);
        MPI_Win_wait(window);
        expect("mpi_rma_early_wait", "late_complete/MPI_Win_wait", LATE, 0);
        expect("mpi_rma_late_complete", "late_complete/MPI_Win_wait", LATE, 0);
    }
    MPI_Group_free(&partner);
}

/* Rank 0 accesses three targets, of which rank 3 posts last; all three wait for rank 0 to complete. */
static void one_origin(void)
{
    MPI_Group targets = group_of(size - 1, (int[]){1, 2, 3}), origin = group_of(1, (int[]){0});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_start(targets, 0, window);
        for (int target = 1; target < size; target++)
            MPI_Put(local, 8, MPI_DOUBLE, target, 0, 8, MPI_DOUBLE, window);
        MPI_Win_complete(window);
        expect(LATE_POST, "one_origin", LATE * (size - 1), 3);
    } else {
        work(LATE * rank);
        MPI_Win_post(origin, 0, window);
        MPI_Win_wait(window);
    }
    MPI_Group_free(&targets);
    MPI_Group_free(&origin);
}

/* Rank 0 is accessed by three origins, the last of them rank 3; it polls first, which is not waiting. */
static void one_target(void)
{
    MPI_Group origins = group_of(size - 1, (int[]){1, 2, 3}), target = group_of(1, (int[]){0});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int done;
        MPI_Win_post(origins, 0, window);
        MPI_Win_test(window, &done);
        work(LATE);
        MPI_Win_wait(window);
        expect("mpi_rma_early_wait", "one_target/MPI_Win_wait", LATE * (size - 2), 3);
    } else {
        MPI_Win_start(target, 0, window);
        MPI_Accumulate(local, 8, MPI_DOUBLE, 0, 0, 8, MPI_DOUBLE, MPI_SUM, window);
        work(LATE * rank);
        MPI_Win_complete(window);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&target);
}

/* The target polls until the origin has completed. */
static void polled(void)
{
    MPI_Group partner = group_of(1, (int[]){1 - rank % 2});
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_start(partner, 0, window);
        MPI_Put(local, 8, MPI_DOUBLE, 1, 0, 8, MPI_DOUBLE, window);
        work(LATE);
        MPI_Win_complete(window);
    } else if (rank == 1) {
        int done = 0;
        MPI_Win_post(partner, 0, window);
        for (MPI_Win_test(window, &done); !done; MPI_Win_test(window, &done))
            work(LATE / 4);
        expect("mpi_rma_early_wait", "polled", 0, -1);
    }
    MPI_Group_free(&partner);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    late_post();
    early_wait();
    late_complete();
    one_origin();
    one_target();
    polled();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
