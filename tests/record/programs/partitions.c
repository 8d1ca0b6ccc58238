/* Rank 0 receives messages in partitions from rank 1, which computes for U before each call that makes some of them ready. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define U 0.02
#define PARTS 4
#define COUNT 256
#define CASE(name) static __attribute__((noinline)) void name(int rank, MPI_Request request)

static double values[PARTS * COUNT];

static __attribute__((noinline)) void compute(void)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < U) { }
}

CASE(one_by_one)
{
    for (int i = PARTS - 1; rank && i >= 0; i--) {
        compute();
        MPI_Pready(i, request);
    }
}

CASE(in_ranges)
{
    for (int i = 0; rank && i < PARTS; i += 2) {
        compute();
        MPI_Pready_range(i, i + 1, request);
    }
}

CASE(in_lists)
{
    int first[] = {2, 0}, second[] = {1, 3};
    if (!rank) return;
    compute();
    MPI_Pready_list(2, first, request);
    compute();
    MPI_Pready_list(2, second, request);
}

/* The last one that rank 0 asks for is there last. */
CASE(asked)
{
    int here = 0;
    for (int i = 0; rank && i < PARTS; i++) {
        compute();
        MPI_Pready(i, request);
    }
    while (!rank && !here) MPI_Parrived(request, PARTS - 1, &here);
}

static void *ready(void *request)
{
    compute();
    compute();
    MPI_Pready_range(1, PARTS - 1, *(MPI_Request *)request);
    return NULL;
}

CASE(by_threads)
{
    pthread_t thread;
    if (!rank) return;
    pthread_create(&thread, NULL, ready, &request);
    compute();
    MPI_Pready(0, request);
    pthread_join(thread, NULL);
}

int main(void)
{
    int rank, provided;
    void (*cases[])(int, MPI_Request) = {one_by_one, in_ranges, in_lists, asked, by_threads};
    MPI_Request request;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank)
        MPI_Psend_init(values, PARTS, COUNT, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(values, PARTS, COUNT, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Start(&request);
        cases[i](rank, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!rank) printf("%.6f\n", MPI_Wtime() - begin);
    }
    MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
