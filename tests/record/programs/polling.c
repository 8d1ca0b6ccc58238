/* Rank 0 asks again and again whether something has come from rank 1, which computes for U before. In each case in another way. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define U 0.04
#define CASE(name) static __attribute__((noinline)) void name(int rank)

static void compute(double seconds)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < seconds) { }
}

static void send(int tag)
{
    int x = tag;
    compute(U);
    MPI_Send(&x, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

CASE(test)
{
    int x, done = 0;
    MPI_Request request;
    if (rank) { send(1); return; }
    MPI_Irecv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/* From two places, and asking of requests that are complete as well. */
CASE(in_turns)
{
    int x[3], done[3] = {0}, other;
    MPI_Request requests[3];
    if (rank) { for (int i = 0; i < 3; i++) send(10 + i); return; }
    for (int i = 0; i < 3; i++) MPI_Irecv(&x[i], 1, MPI_INT, 1, 10 + i, MPI_COMM_WORLD, &requests[i]);
    while (!done[0] || !done[1] || !done[2]) {
        for (int i = 0; i < 3; i++) MPI_Test(&requests[i], &done[i], MPI_STATUS_IGNORE);
        MPI_Iprobe(1, 99, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
        compute(0.00002);
    }
}

CASE(testany)
{
    int x[2], index = 0, done = 0;
    MPI_Request requests[2];
    if (rank) { send(20); send(21); return; }
    for (int i = 0; i < 2; i++) MPI_Irecv(&x[i], 1, MPI_INT, 1, 20 + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 2; i++) {
        done = 0;
        while (!done) MPI_Testany(2, requests, &index, &done, MPI_STATUS_IGNORE);
    }
}

CASE(testall)
{
    int x[2], done = 0;
    MPI_Request requests[2];
    if (rank) { send(30); send(31); return; }
    for (int i = 0; i < 2; i++) MPI_Irecv(&x[i], 1, MPI_INT, 1, 30 + i, MPI_COMM_WORLD, &requests[i]);
    while (!done) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
}

CASE(testsome)
{
    int x[2], indices[2], count, left = 2;
    MPI_Request requests[2];
    if (rank) { send(40); send(41); return; }
    for (int i = 0; i < 2; i++) MPI_Irecv(&x[i], 1, MPI_INT, 1, 40 + i, MPI_COMM_WORLD, &requests[i]);
    while (left) {
        MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
        if (count > 0) left -= count;
    }
}

/* The request stays, and a further call frees it. */
CASE(get_status)
{
    int x, done = 0;
    MPI_Request request;
    if (rank) { send(45); return; }
    MPI_Irecv(&x, 1, MPI_INT, 1, 45, MPI_COMM_WORLD, &request);
    while (!done) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CASE(iprobe)
{
    int x, done = 0;
    if (rank) { send(50); return; }
    while (!done) MPI_Iprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    MPI_Recv(&x, 1, MPI_INT, 1, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

CASE(improbe)
{
    int x, done = 0;
    MPI_Message message;
    if (rank) { send(60); return; }
    while (!done) MPI_Improbe(1, 60, MPI_COMM_WORLD, &done, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

CASE(collective)
{
    int done = 0;
    MPI_Request request;
    if (rank) compute(U);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (rank) { MPI_Wait(&request, MPI_STATUS_IGNORE); return; }
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static MPI_Win window;

CASE(exposure)
{
    int other = 1 - rank, done = 0, x = 7;
    MPI_Group all, one;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &one);
    if (rank) {
        MPI_Win_start(one, 0, window);
        MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        compute(U);
        MPI_Win_complete(window);
    } else {
        MPI_Win_post(one, 0, window);
        while (!done) MPI_Win_test(window, &done);
    }
    MPI_Group_free(&one);
    MPI_Group_free(&all);
}

/* Sleeping between tests is no computation. */
CASE(sleeping)
{
    int x, done = 0;
    MPI_Request request;
    if (rank) { send(70); return; }
    MPI_Irecv(&x, 1, MPI_INT, 1, 70, MPI_COMM_WORLD, &request);
    while (!done) { MPI_Test(&request, &done, MPI_STATUS_IGNORE); usleep(1000); }
}

/* Computing is: rank 0 has something else to do. */
CASE(computing)
{
    int x, done = 0;
    MPI_Request request;
    if (rank) { send(80); return; }
    MPI_Irecv(&x, 1, MPI_INT, 1, 80, MPI_COMM_WORLD, &request);
    while (!done) { MPI_Test(&request, &done, MPI_STATUS_IGNORE); compute(0.001); }
}

/* What rank 0 asks for in vain is no wait: it comes in a receive later on. */
CASE(in_vain)
{
    int x, done;
    if (rank) { compute(U); send(90); return; }
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < U / 2;) {
        MPI_Iprobe(1, 90, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    }
    compute(U);
    MPI_Recv(&x, 1, MPI_INT, 1, 90, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

#define RUN(name) { MPI_Barrier(MPI_COMM_WORLD); if (argc < 2 || !strcmp(argv[1], #name)) name(rank); }

int main(int argc, char **argv)
{
    int rank, *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    RUN(test) RUN(in_turns) RUN(testany) RUN(testall) RUN(testsome) RUN(get_status) RUN(iprobe) RUN(improbe) RUN(collective)
    RUN(exposure) RUN(sleeping) RUN(computing) RUN(in_vain)
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    MPI_Finalize();
    if (!rank) printf("done\n");
}
