/* What all programs of the matrix do: 10 steps of a ring with requests, a reduction, a split communicator. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size;
    double sent, received = 0, sum = 0;
    MPI_Comm half;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    for (int step = 0; step < 10; step++) {
        sent = rank + step;
        MPI_Irecv(&received, 1, MPI_DOUBLE, (rank + size - 1) % size, step, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&sent, 1, MPI_DOUBLE, (rank + 1) % size, step, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&received, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
    }
    if (rank == 0) {
        MPI_Send(&sum, 1, MPI_DOUBLE, 1, 99, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(&received, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("%d %.0f\n", rank, sum);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
