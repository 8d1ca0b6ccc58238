/* Some threads of rank 0 send windows of messages to as many threads of rank 1: THREADS WINDOW BYTES WINDOWS OWN, where OWN gives each pair
   of threads a communicator of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#define MOST_THREADS 16
#define MOST_MESSAGES 256

static int rank, window, bytes, windows;
static MPI_Comm comms[MOST_THREADS];

static void *exchange(void *argument)
{
    int thread = (int)(long)argument;
    MPI_Request requests[MOST_MESSAGES];
    char *data = malloc((size_t)bytes * window);
    for (int n = 0; n < windows; n++) {
        for (int i = 0; i < window; i++) {
            char *message = data + (size_t)bytes * i;
            if (rank == 0) MPI_Isend(message, bytes, MPI_BYTE, 1, thread, comms[thread], &requests[i]);
            else MPI_Irecv(message, bytes, MPI_BYTE, 0, thread, comms[thread], &requests[i]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    }
    free(data);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, threads = atoi(argv[1]), own = atoi(argv[5]);
    pthread_t others[MOST_THREADS];
    window = atoi(argv[2]);
    bytes = atoi(argv[3]);
    windows = atoi(argv[4]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE || threads > MOST_THREADS || window > MOST_MESSAGES) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int t = 0; t < threads; t++) {
        comms[t] = MPI_COMM_WORLD;
        if (own) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    }
    for (long t = 1; t < threads; t++) pthread_create(&others[t], NULL, exchange, (void *)t);
    exchange(NULL);
    for (int t = 1; t < threads; t++) pthread_join(others[t], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
