/* Heat in a plate, solved by Jacobi iterations: rows are shared among the ranks, unevenly, so some wait for others.
 *
 *     mpicc -g -O2 heat.c -o heat -lm
 *     whywait record mpiexec -n 4 ./heat
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 2000, ROWS = 240, ITERATIONS = 200 };

static int rank, size, up, down, rows;
static double *plate, *next;

/* The last rank has three times the rows of the others. */
static void share_rows(void)
{
    rows = ROWS / (size + 2) * (rank == size - 1 ? 3 : 1);
    plate = calloc((size_t)(rows + 2) * COLUMNS, sizeof *plate);
    next = calloc((size_t)(rows + 2) * COLUMNS, sizeof *next);
    if (rank == 0)
        for (int column = 0; column < COLUMNS; column++)
            plate[column] = next[column] = 100.0;
}

static void exchange_edges(void)
{
    double *first = plate + COLUMNS, *last = plate + (size_t)rows * COLUMNS;
    MPI_Sendrecv(first, COLUMNS, MPI_DOUBLE, up, 0, last + COLUMNS, COLUMNS, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, COLUMNS, MPI_DOUBLE, down, 1, plate, COLUMNS, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static double relax(void)
{
    double change = 0;
    for (int row = 1; row <= rows; row++)
        for (int column = 1; column < COLUMNS - 1; column++) {
            size_t at = (size_t)row * COLUMNS + column;
            next[at] = 0.25 * (plate[at - 1] + plate[at + 1] + plate[at - COLUMNS] + plate[at + COLUMNS]);
            change = fmax(change, fabs(next[at] - plate[at]));
        }
    memcpy(plate + COLUMNS, next + COLUMNS, (size_t)rows * COLUMNS * sizeof *plate);
    return change;
}

int main(int argc, char **argv)
{
    double change, largest = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    share_rows();
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        exchange_edges();
        change = relax();
        if (iteration % 10 == 0)
            MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("largest change: %g\n", largest);
    free(plate);
    free(next);
    MPI_Finalize();
    return 0;
}
