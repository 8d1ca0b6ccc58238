/*
 * Two groups of ranks that talk across: the even ones and the odd ones. The partner's number counts in its own group.
 */
#include <mpi.h>

#include "known.h"

enum { COUNT = 8 };
static const double LATE = 20;

static int rank;
static double in[COUNT], out[COUNT];
static MPI_Comm half, across;

static void late_sender(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) {
        MPI_Recv(in, COUNT, MPI_DOUBLE, 1, 1, across, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "late_sender/MPI_Recv", LATE, 3);
    } else if (rank == 3) {
        work(LATE);
        MPI_Send(out, COUNT, MPI_DOUBLE, 1, 1, across);
    }
}

static void late_receiver(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Request request;
        MPI_Issend(out, COUNT, MPI_DOUBLE, 1, 2, across, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect("mpi_latereceiver", "late_receiver/MPI_Wait", LATE, 3);
    } else if (rank == 3) {
        work(LATE);
        MPI_Recv(in, COUNT, MPI_DOUBLE, 0, 2, across, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 20, &across);
    late_sender();
    late_receiver();
    MPI_Comm_free(&across);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
