/*
 * A rank that receives late, and one that sends late: how many messages are unexpected, how long the queues get, and how
 * many comparisons it takes to find the messages follows from the program's text.
 */
#include <mpi.h>

#include "known.h"

enum { SENDER = 0, RECEIVER = 1, MESSAGES = 20, SMALL = 8, BIG = 1 << 17 };
static const double LATE = 20;

static int rank;
static double in[BIG], out[BIG];

/* All messages are in the queue before the first of them is received. */
static void late_receiver(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == SENDER) {
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(out, SMALL, MPI_DOUBLE, RECEIVER, 1, MPI_COMM_WORLD);
        expect("mpi_latereceiver", "late_receiver/MPI_Send", 0, -1);
    } else {
        work(LATE);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Recv(in, SMALL, MPI_DOUBLE, SENDER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "late_receiver/MPI_Recv", 0, -1);
    }
}

/* The same in reverse order: each search goes through all messages that are still there. */
static void in_reverse(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == SENDER) {
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(out, SMALL, MPI_DOUBLE, RECEIVER, i, MPI_COMM_WORLD);
    } else {
        work(LATE);
        for (int i = MESSAGES - 1; i >= 0; i--)
            MPI_Recv(in, SMALL, MPI_DOUBLE, SENDER, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* All receives are posted before the first message is sent. */
static void late_sender(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == SENDER) {
        work(LATE);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(out, SMALL, MPI_DOUBLE, RECEIVER, 1, MPI_COMM_WORLD);
    } else {
        MPI_Request requests[MESSAGES];
        for (int i = 0; i < MESSAGES; i++)
            MPI_Irecv(in + i * SMALL, SMALL, MPI_DOUBLE, SENDER, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        expect("mpi_latesender", "late_sender/MPI_Waitall", LATE, SENDER);
    }
}

/* The sender of a large message waits; its header is unexpected, but it has no data in the queue. */
static void rendezvous(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == SENDER) {
        MPI_Send(out, BIG, MPI_DOUBLE, RECEIVER, 1, MPI_COMM_WORLD);
        expect("mpi_latereceiver", "rendezvous/MPI_Send", LATE, RECEIVER);
    } else {
        work(LATE);
        MPI_Recv(in, BIG, MPI_DOUBLE, SENDER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    late_receiver();
    in_reverse();
    late_sender();
    rendezvous();
    MPI_Finalize();
    return 0;
}
