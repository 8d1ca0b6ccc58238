/* What armci.c needs of ARMCI. */
#include <mpi.h>

typedef struct { int process; } armci_hdl_t;
typedef struct { void **from, **to; int bytes, count; } armci_giov_t;

extern MPI_Comm armci_world;

int ARMCI_Init(void);
int ARMCI_Finalize(void);
int ARMCI_Malloc(void **pointers, long bytes);
int ARMCI_Get(void *from, void *to, int bytes, int process);
int ARMCI_PutS(void *from, int *from_strides, void *to, int *to_strides, int *counts, int levels, int process);
int ARMCI_AccV(int type, void *scale, armci_giov_t *vectors, int n, int process);
int ARMCI_NbGet(void *from, void *to, int bytes, int process, armci_hdl_t *handle);
int ARMCI_Wait(armci_hdl_t *handle);
int ARMCI_PutValueDouble(double value, void *to, int process);
int ARMCI_Rmw(int op, void *own, void *other, int value, int process);
void ARMCI_Fence(int process);
void ARMCI_AllFence(void);
void ARMCI_Barrier(void);
int ARMCI_Create_mutexes(int count);
int ARMCI_Destroy_mutexes(void);
void ARMCI_Lock(int mutex, int process);
void ARMCI_Unlock(int mutex, int process);
void armci_msg_barrier(void);
