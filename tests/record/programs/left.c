// Calls of MPI that do not return, or not well. Argument: `jump` (error handlers that leave by longjmp, from deeper and from less deep functions),
// `throw` (by an exception of C++), or `truncate` (messages longer than their buffers). Two ranks; each prints what it counted.
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jmp_buf back;

#ifdef __cplusplus
static void leave(MPI_Comm *comm, int *code, ...) { throw *code; }
#else
static void leave(MPI_Comm *comm, int *code, ...) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(*code, text, &length);
    longjmp(back, 1);
}
#endif

static void send_to(int rank) {
    int x = 1;
    MPI_Send(&x, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
}

// Calls MPI from further down the stack than the call that was left, whose memory it overwrites.
__attribute__((noinline)) static int deeper(int depth) {
    volatile char room[2000];
    memset((void *)room, depth, sizeof room);
    if (depth > 0)
        return deeper(depth - 1) + room[0];
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}

// The same, but leaves the memory as it was.
__attribute__((noinline)) static int past(void) {
    volatile char room[20000];
    MPI_Barrier(MPI_COMM_WORLD);
    return sizeof room;
}

int main(int argc, char **argv) {
    int rank, caught = 0;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "truncate") == 0) {
        // The second message of each kind must find its own receive.
        int two[2] = {1, 2}, one[2];
        MPI_Request request;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int i = 0; i < 3; i++)
            if (rank == 1) {
                usleep(20000);
                MPI_Send(two, 2, MPI_INT, 0, 0, MPI_COMM_WORLD);
                usleep(20000);
                MPI_Send(two, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
            } else if (i == 0) {
                caught += MPI_Recv(one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS;
                MPI_Recv(one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Irecv(one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
                caught += (i == 1 ? MPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_Waitall(1, &request, MPI_STATUSES_IGNORE))
                          != MPI_SUCCESS;
                MPI_Recv(one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
    } else {
        MPI_Comm_create_errhandler(leave, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        for (volatile int i = 0; i < 3; i++) {
#ifdef __cplusplus
            try {
                send_to(99);
            } catch (int code) {
                caught++;
            }
#else
            if (!setjmp(back))
                send_to(99);
            else
                caught++;
#endif
            if (i == 0)
                deeper(3);
            else if (i == 1)
                past();
            else
                MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    printf("rank %d caught %d\n", rank, caught);
    MPI_Finalize();
}
