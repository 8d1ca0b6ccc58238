// The main thread ends before the process does: by pthread_exit, with a thread that ends after it (`later`) or without one (`last`).
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// More than the recorder's first files hold: it makes further ones ready in a thread of its own.
enum { CALLS = 40000 };

static void at_exit(void) { puts("at exit"); }

static void calls(void) {
    int out = 1, in;
    for (int i = 0; i < CALLS; i++)
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void *later(void *unused) {
    usleep(50000);
    calls();
    MPI_Finalize();
    return unused;
}

int main(int argc, char **argv) {
    int given;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    atexit(at_exit);
    calls();
    if (!strcmp(argv[1], "later"))
        pthread_create(&thread, NULL, later, NULL);
    else
        MPI_Finalize();
    pthread_exit(NULL);
}
