/* Known waits in ARMCI: process 1 is outside of the library for 3 units, and process 0 calls after one. U is a unit in microseconds. The program
   prints by its own clock when processes came to the calls that matter. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "armci.h"

#define U 50000

static int rank;

static void sleep_units(int units) { usleep(units * U); }

static void mark(const char *name)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("mark %d %s %.9f\n", rank, name, now.tv_sec + 1e-9 * now.tv_nsec);
}

#define CASE(name, call)                                          \
    __attribute__((noinline)) static void name(void)              \
    {                                                             \
        ARMCI_Barrier();                                          \
        if (rank == 1) {                                          \
            sleep_units(3);                                       \
            mark(#name);                                          \
        }                                                         \
        if (rank == 0) {                                          \
            sleep_units(1);                                       \
            mark(#name);                                          \
            call;                                                 \
        }                                                         \
        armci_msg_barrier();                                      \
    }

static int counts[] = {8, 10, 3};
static armci_giov_t vectors[] = {{0, 0, 8, 5}, {0, 0, 4, 2}};
static armci_hdl_t first, second;
static double value;

CASE(get, ARMCI_Get(0, 0, 1000, 1))
CASE(put, ARMCI_PutS(0, 0, 0, 0, counts, 2, 1))
CASE(accumulate, ARMCI_AccV(0, 0, vectors, 2, 1))
CASE(counter, ARMCI_Rmw(0, 0, 0, 1, 1))
CASE(fence, (ARMCI_PutValueDouble(2.5, &value, 1), ARMCI_Fence(1)))
CASE(nonblocking, (ARMCI_NbGet(0, 0, 16, 1, &first), ARMCI_NbGet(0, 0, 32, 1, &second), ARMCI_Wait(&second), ARMCI_Wait(&first)))

/* Process 1 has the lock of process 0 for 2 units; process 2 wants it after one. */
__attribute__((noinline)) static void locked(void)
{
    ARMCI_Create_mutexes(1);
    if (rank == 1) {
        ARMCI_Lock(0, 0);
        sleep_units(2);
        ARMCI_Unlock(0, 0);
        mark("locked");
    } else if (rank == 2) {
        sleep_units(1);
        mark("locked");
        ARMCI_Lock(0, 0);
        ARMCI_Unlock(0, 0);
    }
    ARMCI_Destroy_mutexes();
}

/* A communicator that ARMCI made: all wait for process 2. */
__attribute__((noinline)) static void message(void)
{
    int sum = 0;
    if (rank == 2)
        sleep_units(2);
    if (rank != 1)
        mark("message");
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, armci_world);
    printf("values %d %d %g\n", rank, sum, value);
}

int main(int argc, char **argv)
{
    void *pointers[16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ARMCI_Init();
    ARMCI_Malloc(pointers, 8);
    get();
    put();
    accumulate();
    counter();
    fence();
    nonblocking();
    locked();
    message();
    ARMCI_AllFence();
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
