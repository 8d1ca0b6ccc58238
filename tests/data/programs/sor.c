/*
 * Successive over-relaxation on rows shared out to the ranks, red points and black points in turn. The argument says how
 * edges reach the neighbours: p2p, fence, gats or locks. Rank 2 has more work, and the others wait for it.
 */
#include <math.h>
#include <mpi.h>
#include <string.h>

#include "known.h"

enum { ROWS = 8, COLUMNS = 32, ITERATIONS = 10, SLOW = 2 };
static const double USUAL = 1.5, EXTRA = 1, OMEGA = 1.5;

static int rank, size, up, down;
static double grid[ROWS + 2][COLUMNS]; /* row 0 and row ROWS + 1 are copies of the neighbours' edges */
static MPI_Win window;
static MPI_Group neighbours;

enum { ABOVE = 0, BELOW = (ROWS + 1) * COLUMNS }; /* where they stand in the window */

static void put(int target, const double *row, MPI_Aint at)
{
    if (target != MPI_PROC_NULL)
        MPI_Put(row, COLUMNS, MPI_DOUBLE, target, at, COLUMNS, MPI_DOUBLE, window);
}

static void exchange_p2p(void)
{
    MPI_Sendrecv(grid[1], COLUMNS, MPI_DOUBLE, up, 1, grid[ROWS + 1], COLUMNS, MPI_DOUBLE, down, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(grid[ROWS], COLUMNS, MPI_DOUBLE, down, 2, grid[0], COLUMNS, MPI_DOUBLE, up, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void exchange_fence(void)
{
    MPI_Win_fence(0, window);
    put(up, grid[1], BELOW);
    put(down, grid[ROWS], ABOVE);
    MPI_Win_fence(0, window);
}

static void exchange_gats(void)
{
    MPI_Win_post(neighbours, 0, window);
    MPI_Win_start(neighbours, 0, window);
    put(up, grid[1], BELOW);
    put(down, grid[ROWS], ABOVE);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
}

static void put_locked(int target, const double *row, MPI_Aint at)
{
    if (target == MPI_PROC_NULL)
        return;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
    put(target, row, at);
    MPI_Win_unlock(target, window);
}

/* The neighbours must neither be overtaken nor left behind: a barrier before and one after. */
static void exchange_locks(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    put_locked(up, grid[1], BELOW);
    put_locked(down, grid[ROWS], ABOVE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static double relax(int colour)
{
    double change = 0;
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1 + (i + colour) % 2; j < COLUMNS - 1; j += 2) {
            double step = (grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + grid[i][j + 1]) / 4 - grid[i][j];
            grid[i][j] += OMEGA * step;
            change += fabs(step);
        }
    work(USUAL + (rank == SLOW ? EXTRA : 0));
    return change;
}

static void solve(void (*exchange)(void))
{
    double change, total;
    for (int i = 0; i < ITERATIONS; i++) {
        change = 0;
        for (int colour = 0; colour < 2; colour++) {
            exchange();
            change += relax(colour);
        }
        MPI_Allreduce(&change, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void group_neighbours(void)
{
    int members[2], count = 0;
    MPI_Group world;
    if (up != MPI_PROC_NULL)
        members[count++] = up;
    if (down != MPI_PROC_NULL)
        members[count++] = down;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, members, &neighbours);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*exchange)(void); const char *metrics; } variants[] = {
        {"p2p", exchange_p2p, "mpi_latesender+mpi_wait_nxn"},
        {"fence", exchange_fence, "mpi_rma_wait_at_fence+mpi_wait_nxn"},
        {"gats", exchange_gats, "mpi_rma_sync_late_post+mpi_rma_comm_late_post+mpi_rma_early_wait+mpi_wait_nxn"},
        {"locks", exchange_locks, "mpi_barrier_wait+mpi_wait_nxn"},
    };
    const char *wanted = argc > 1 ? argv[1] : "p2p";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int j = 0; j < COLUMNS; j++)
        grid[rank == 0 ? 1 : 0][j] = rank == 0;
    group_neighbours();
    MPI_Win_create(grid, sizeof grid, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(variants[i].name, wanted) == 0) {
            solve(variants[i].exchange);
            /* Ranks farther away wait as long, but partly for a call of their neighbour that waits itself. */
            if (up == SLOW || down == SLOW)
                expect(variants[i].metrics, "solve", 2 * ITERATIONS * EXTRA, SLOW);
        }
    }
    MPI_Win_free(&window);
    MPI_Group_free(&neighbours);
    MPI_Finalize();
    return 0;
}
