// Rank 0 sends 100 messages, and rank 1 receives the last of them first: then the others are in its queue of unexpected messages.
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, message = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int tag = 0; tag < 100 && rank == 0; tag++)
        MPI_Send(&tag, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
    for (int tag = 99; tag >= 0 && rank == 1; tag--)
        MPI_Recv(&message, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
