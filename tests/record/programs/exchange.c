/* Rank 1 exchanges with two others: its receiver, rank 2, is late by U; its sender, rank 0, is not. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { LARGE = 1 << 20, SMALL = 100 };

static char out[LARGE], in[LARGE];

static void late(int rank) {
    MPI_Barrier(MPI_COMM_WORLD);
    struct timespec u = {0, 40000000};
    if (rank == 2)
        nanosleep(&u, NULL);
}

static void exchange(int rank, int bytes) {
    late(rank);
    if (rank == 0)
        MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Sendrecv(out, bytes, MPI_BYTE, 2, 0, in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void large(int rank) { exchange(rank, LARGE); }

static void small(int rank) { exchange(rank, SMALL); }

/* Rank 0 sends when rank 1 waits already. */
static void both(int rank) {
    late(rank);
    struct timespec half = {0, 20000000};
    MPI_Request requests[2];
    if (rank == 0) {
        nanosleep(&half, NULL);
        MPI_Send(out, SMALL, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Irecv(in, SMALL, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Issend(out, SMALL, MPI_BYTE, 2, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(in, SMALL, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    large(rank);
    small(rank);
    both(rank);
    MPI_Finalize();
    return 0;
}
