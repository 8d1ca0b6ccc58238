// Eight threads of each rank send and receive at once, as many requests as the argument says each, completed in any order.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8
#define WINDOW 64

static int me, other, requests, wrong;

static void *exchange(void *argument) {
    int thread = (int)(long)argument, sent[WINDOW], got[WINDOW], indices[2 * WINDOW], count;
    MPI_Request open[2 * WINDOW];
    for (int done = 0; done < requests; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++) {
            sent[i] = done + i;
            MPI_Irecv(&got[i], 1, MPI_INT, other, thread * WINDOW + i, MPI_COMM_WORLD, &open[2 * i]);
            MPI_Isend(&sent[i], 1, MPI_INT, other, thread * WINDOW + i, MPI_COMM_WORLD, &open[2 * i + 1]);
        }
        for (int left = 2 * WINDOW; left > 0; left -= count) {
            if (done % (2 * WINDOW))
                MPI_Waitsome(2 * WINDOW, open, &count, indices, MPI_STATUSES_IGNORE);
            else
                MPI_Testsome(2 * WINDOW, open, &count, indices, MPI_STATUSES_IGNORE);
        }
        for (int i = 0; i < WINDOW; i++)
            wrong += got[i] != done + i;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    other = 1 - me;
    requests = atoi(argv[1]);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, exchange, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("rank %d: %d wrong\n", me, provided == MPI_THREAD_MULTIPLE ? wrong : -1);
    MPI_Finalize();
    return wrong;
}
