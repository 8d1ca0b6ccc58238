/* A program before and after three changes of its communication, for `whywait whatif --split` and `--overlap`.
 *
 *   overlap split|blocking|wait before|after
 *
 * split: ranks in a row pass 4 MiB on with MPI_Sendrecv; after the change with MPI_Send, and then MPI_Recv.
 * blocking: each rank receives from the one before it in a ring, and works; after the change it posts the receive and waits for it
 *   behind the work.
 * wait: ranks in a ring exchange messages without blocking, wait for them, and work; after the change they wait behind it.
 *
 * Work is sleep, so that ranks do not share cores. In each step, another rank works longer. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 1 << 22, SMALL = 1000, STEPS = 48 };
static int rank, size, after;
static char *out, *in;

static void work(int step) {
    struct timespec time = {0, step % size == rank ? 4000000 : 1000000};
    nanosleep(&time, NULL);
}

static void split(int step) {
    int to = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, from = rank ? rank - 1 : MPI_PROC_NULL;
    work(step);
    MPI_Barrier(MPI_COMM_WORLD);
    if (after) {
        MPI_Send(out, LARGE, MPI_CHAR, to, 1, MPI_COMM_WORLD);
        MPI_Recv(in, LARGE, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else
        MPI_Sendrecv(out, LARGE, MPI_CHAR, to, 1, in, LARGE, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void blocking(int step) {
    MPI_Request request = MPI_REQUEST_NULL;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Send(out, SMALL, MPI_CHAR, to, 1, MPI_COMM_WORLD);
    if (after) MPI_Irecv(in, SMALL, MPI_CHAR, from, 1, MPI_COMM_WORLD, &request);
    if (!after) MPI_Recv(in, SMALL, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(step);
    if (after) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void waiting(int step) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, SMALL, MPI_CHAR, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, SMALL, MPI_CHAR, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    if (!after) MPI_Waitall(2, requests, statuses);
    work(step);
    if (after) MPI_Waitall(2, requests, statuses);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "split";
    int step;
    after = argc > 2 && !strcmp(argv[2], "after");
    out = calloc(LARGE, 1), in = calloc(LARGE, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (step = 0; step < STEPS; step++) {
        if (!strcmp(which, "split")) split(step);
        else if (!strcmp(which, "blocking")) blocking(step);
        else waiting(step);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
