// Rank 0 computes while all others send; then it looks for messages, and receives them in order. Communicators are made and freed. If
// an argument is there, the program begins MPI_T before MPI.
#include <mpi.h>
#include <unistd.h>

enum { MESSAGES = 100, ROUNDS = 3, LAST = 1000 };

int main(int argc, char **argv) {
    int rank, size, flag, provided, message = 0;
    if (argc > 1) MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
        if (rank) {
            for (int tag = 0; tag < MESSAGES; tag++) MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
            MPI_Recv(&message, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        usleep(50000);
        MPI_Iprobe(1, LAST, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        for (int tag = 0; tag < MESSAGES; tag++)
            for (int from = 1; from < size; from++)
                MPI_Recv(&message, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int to = 1; to < size; to++) MPI_Send(&message, 1, MPI_INT, to, LAST, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
