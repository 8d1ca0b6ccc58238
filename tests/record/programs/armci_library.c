/* A small ARMCI that polls, as ComEx does: who is outside of the library serves nobody. WINDOWS makes windows of MPI below it. */
#include <mpi.h>
#include <unistd.h>
#include "armci.h"

#define WEAK(result, name, ...) result name __VA_ARGS__ __attribute__((weak, alias("P" #name)));

MPI_Comm armci_world;
static MPI_Comm requests;
static MPI_Win window;
static int rank, size;
static int is_locked;

/* Serves whoever asks, until the answer has come (or all others have, in a barrier). */
static void serve(MPI_Request *until)
{
    for (int done = 0; !done;) {
        int found, value;
        MPI_Status status;
        MPI_Test(until, &done, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, 1, requests, &found, &status);
        if (found) {
            MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 1, requests, MPI_STATUS_IGNORE);
            /* 1: lock, 2: unlock. */
            if (value == 1 && is_locked)
                value = -1;
            else if (value == 1 || value == 2)
                is_locked = value == 1;
            MPI_Send(&value, 1, MPI_INT, status.MPI_SOURCE, 2, requests);
        } else if (!done) {
            usleep(100);
        }
    }
}

static int ask(int process, int what)
{
    int answer;
    MPI_Request request;
    MPI_Irecv(&answer, 1, MPI_INT, process, 2, requests, &request);
    MPI_Send(&what, 1, MPI_INT, process, 1, requests);
    serve(&request);
    return answer;
}

static void meet(void)
{
    MPI_Request request;
    MPI_Ibarrier(armci_world, &request);
    serve(&request);
}

int PARMCI_Init(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &armci_world);
    MPI_Comm_dup(MPI_COMM_WORLD, &requests);
    MPI_Comm_rank(armci_world, &rank);
    MPI_Comm_size(armci_world, &size);
#ifdef WINDOWS
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, armci_world, &window);
#endif
    return 0;
}

int PARMCI_Finalize(void)
{
    meet();
#ifdef WINDOWS
    MPI_Win_free(&window);
#endif
    MPI_Comm_free(&requests);
    MPI_Comm_free(&armci_world);
    return 0;
}

int PARMCI_Malloc(void **pointers, long bytes) { (void)pointers; (void)bytes; meet(); return 0; }
int PARMCI_Put(void *from, void *to, int bytes, int process) { (void)from; (void)to; (void)bytes; ask(process, 0); return 0; }
int PARMCI_Get(void *from, void *to, int bytes, int process) { (void)from; (void)to; (void)bytes; ask(process, 0); return 0; }
int PARMCI_PutS(void *from, int *from_strides, void *to, int *to_strides, int *counts, int levels, int process)
{
    (void)from; (void)from_strides; (void)to; (void)to_strides; (void)counts; (void)levels;
    ask(process, 0);
    return 0;
}
int PARMCI_AccV(int type, void *scale, armci_giov_t *vectors, int n, int process)
{
    (void)type; (void)scale; (void)vectors; (void)n;
    ask(process, 0);
    return 0;
}
int PARMCI_NbGet(void *from, void *to, int bytes, int process, armci_hdl_t *handle)
{
    (void)from; (void)to; (void)bytes;
    handle->process = process;
    return 0;
}
int PARMCI_Wait(armci_hdl_t *handle) { ask(handle->process, 0); return 0; }
int PARMCI_PutValueDouble(double value, void *to, int process) { (void)process; *(double *)to = value; return 0; }
int PARMCI_Rmw(int op, void *own, void *other, int value, int process) { (void)op; (void)own; (void)other; (void)value; ask(process, 0); return 0; }
void PARMCI_Fence(int process) { ask(process, 0); }
void PARMCI_AllFence(void) {}
void PARMCI_Barrier(void) { meet(); }
int PARMCI_Create_mutexes(int count) { (void)count; meet(); return 0; }
int PARMCI_Destroy_mutexes(void) { meet(); return 0; }
void PARMCI_Lock(int mutex, int process) { (void)mutex; while (ask(process, 1) != 1) ; }
void PARMCI_Unlock(int mutex, int process) { (void)mutex; ask(process, 2); }
void parmci_msg_barrier(void) { meet(); }

WEAK(int, ARMCI_Init, (void))
WEAK(int, ARMCI_Finalize, (void))
WEAK(int, ARMCI_Malloc, (void **, long))
WEAK(int, ARMCI_Get, (void *, void *, int, int))
WEAK(int, ARMCI_PutS, (void *, int *, void *, int *, int *, int, int))
WEAK(int, ARMCI_AccV, (int, void *, armci_giov_t *, int, int))
WEAK(int, ARMCI_NbGet, (void *, void *, int, int, armci_hdl_t *))
WEAK(int, ARMCI_Wait, (armci_hdl_t *))
WEAK(int, ARMCI_PutValueDouble, (double, void *, int))
WEAK(int, ARMCI_Rmw, (int, void *, void *, int, int))
WEAK(void, ARMCI_Fence, (int))
WEAK(void, ARMCI_AllFence, (void))
WEAK(void, ARMCI_Barrier, (void))
WEAK(int, ARMCI_Create_mutexes, (int))
WEAK(int, ARMCI_Destroy_mutexes, (void))
WEAK(void, ARMCI_Lock, (int, int))
WEAK(void, ARMCI_Unlock, (int, int))
void armci_msg_barrier(void) __attribute__((weak, alias("parmci_msg_barrier")));
