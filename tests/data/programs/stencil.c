/*
 * Jacobi iterations on a grid of 2 x 4 ranks, with rank 5 as the one to blame: it has 3 ms of work an iteration where
 * the others have 2. Its neighbours wait for its halo, theirs wait for them, and all meet in the Allreduce of every
 * fifth iteration. At the end rank 0 collects reports in the order of ranks, but they come in the opposite order.
 */
#include <math.h>
#include <mpi.h>

#include "known.h"

enum { ROWS = 2, COLUMNS = 4, N = 16, ITERATIONS = 100, PERIOD = 5, SLOW = 5 };
static const double USUAL = 2, EXTRA = 1, LATE = 4;

static int rank, size, neighbours[4];
static double field[N + 2][N + 2], next[N + 2][N + 2], edges[4][2][N];

static void setup(void)
{
    int row = rank / COLUMNS, column = rank % COLUMNS;
    neighbours[0] = row > 0 ? rank - COLUMNS : MPI_PROC_NULL;
    neighbours[1] = row < ROWS - 1 ? rank + COLUMNS : MPI_PROC_NULL;
    neighbours[2] = column > 0 ? rank - 1 : MPI_PROC_NULL;
    neighbours[3] = column < COLUMNS - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int i = 1; i <= N; i++)
        field[i][1] = rank + 1;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange_halo(void)
{
    MPI_Request requests[8];
    int count = 0;
    for (int side = 0; side < 4; side++)
        if (neighbours[side] != MPI_PROC_NULL)
            MPI_Irecv(edges[side][0], N, MPI_DOUBLE, neighbours[side], side ^ 1, MPI_COMM_WORLD, &requests[count++]);
    for (int side = 0; side < 4; side++) {
        for (int i = 0; i < N; i++)
            edges[side][1][i] = side < 2 ? field[side ? N : 1][i + 1] : field[i + 1][side == 3 ? N : 1];
        if (neighbours[side] != MPI_PROC_NULL)
            MPI_Isend(edges[side][1], N, MPI_DOUBLE, neighbours[side], side, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 1; i <= N; i++) {
        field[0][i] = edges[0][0][i - 1];
        field[N + 1][i] = edges[1][0][i - 1];
        field[i][0] = edges[2][0][i - 1];
        field[i][N + 1] = edges[3][0][i - 1];
    }
}

static double relax(void)
{
    double change = 0;
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) {
            next[i][j] = (field[i - 1][j] + field[i + 1][j] + field[i][j - 1] + field[i][j + 1]) / 4;
            change += fabs(next[i][j] - field[i][j]);
        }
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++)
            field[i][j] = next[i][j];
    work(USUAL + (rank == SLOW ? EXTRA : 0));
    return change;
}

static double residual(double change)
{
    double total;
    MPI_Allreduce(&change, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static void solve(void)
{
    for (int i = 1; i <= ITERATIONS; i++) {
        exchange_halo();
        double change = relax();
        if (i % PERIOD == 0)
            residual(change);
    }
}

static void collect_reports(void)
{
    double report = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int source = 1; source < size; source++)
            MPI_Recv(&report, 1, MPI_DOUBLE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        work(LATE * (size - rank));
        MPI_Send(&report, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setup();
    solve();
    collect_reports();
    if (rank != SLOW)
        expect("mpi_latesender+mpi_wait_nxn", "solve", ITERATIONS * EXTRA, SLOW);
    if (rank == 0)
        expect("mpi_latesender_wo", "collect_reports/MPI_Recv", LATE * (size - 1), 1);
    MPI_Finalize();
    return 0;
}
