/*
 * Every kind of point-to-point call. Each function holds one situation between the ranks EARLY and TARDY (others pass by)
 * and states what it costs whom.
 */
#include <mpi.h>

#include "known.h"

enum { EARLY = 0, TARDY = 1, SMALL = 8, BIG = 1 << 16 };
static const double LATE = 20;

static int rank, size;
static double in[BIG], out[BIG];

static void together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender(void)
{
    together();
    if (rank == TARDY) {
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 1, MPI_COMM_WORLD);
    } else if (rank == EARLY) {
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "late_sender/MPI_Recv", LATE, TARDY);
    }
}

/* A message without bytes synchronizes like any other. */
static void late_sender_of_nothing(void)
{
    together();
    if (rank == TARDY) {
        work(LATE);
        MPI_Rsend(NULL, 0, MPI_BYTE, EARLY, 1, MPI_COMM_WORLD);
    } else if (rank == EARLY) {
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "late_sender_of_nothing/MPI_Recv", LATE, TARDY);
    }
}

static void late_receiver(void)
{
    together();
    if (rank == EARLY) {
        MPI_Ssend(out, SMALL, MPI_DOUBLE, TARDY, 1, MPI_COMM_WORLD);
        expect("mpi_latereceiver", "late_receiver/MPI_Ssend", LATE, TARDY);
        together();
        MPI_Send(out, BIG, MPI_DOUBLE, TARDY, 1, MPI_COMM_WORLD);
        expect("mpi_latereceiver", "late_receiver/MPI_Send", LATE, TARDY);
        together();
        return;
    }
    if (rank == TARDY) {
        work(LATE);
        MPI_Recv(in, SMALL, MPI_DOUBLE, EARLY, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    together();
    if (rank == TARDY) {
        work(LATE);
        MPI_Recv(in, BIG, MPI_DOUBLE, EARLY, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    together();
}

/* A buffered send does not wait, however late the receiver. */
static void late_receiver_of_buffered(void)
{
    static char buffer[SMALL * sizeof(double) + MPI_BSEND_OVERHEAD];
    together();
    if (rank == EARLY) {
        int length;
        void *address;
        MPI_Buffer_attach(buffer, sizeof buffer);
        MPI_Bsend(out, SMALL, MPI_DOUBLE, TARDY, 1, MPI_COMM_WORLD);
        expect("mpi_latereceiver", "late_receiver_of_buffered/MPI_Bsend", 0, -1);
        MPI_Buffer_detach(&address, &length);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Recv(in, SMALL, MPI_DOUBLE, EARLY, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void late_isend(void)
{
    MPI_Request request;
    together();
    if (rank == EARLY) {
        MPI_Irecv(in, SMALL, MPI_DOUBLE, TARDY, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "late_isend/MPI_Wait", LATE, TARDY);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Isend(out, SMALL, MPI_DOUBLE, EARLY, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void late_irecv(void)
{
    MPI_Request request;
    together();
    if (rank == EARLY) {
        MPI_Issend(out, SMALL, MPI_DOUBLE, TARDY, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect("mpi_latereceiver", "late_irecv/MPI_Wait", LATE, TARDY);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Irecv(in, SMALL, MPI_DOUBLE, EARLY, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Of the messages that one Waitall awaits, the last to be sent counts. */
static void waitall(void)
{
    MPI_Request requests[4];
    together();
    if (rank == EARLY) {
        for (int i = 1; i < size; i++)
            MPI_Irecv(in + i, 1, MPI_DOUBLE, i, 3, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(size - 1, requests + 1, MPI_STATUSES_IGNORE);
        expect("mpi_latesender", "waitall/MPI_Waitall", LATE * (size - 1), size - 1);
    } else {
        work(LATE * rank);
        MPI_Send(out, 1, MPI_DOUBLE, EARLY, 3, MPI_COMM_WORLD);
    }
}

static void waitany(void)
{
    MPI_Request requests[4] = {MPI_REQUEST_NULL};
    together();
    if (rank == EARLY) {
        for (int i = 1; i < size; i++)
            MPI_Irecv(in + i, 1, MPI_DOUBLE, i, 4, MPI_COMM_WORLD, &requests[i]);
        for (int i = 1, which; i < size; i++)
            MPI_Waitany(size, requests, &which, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "waitany/MPI_Waitany", LATE * (size - 1), -1);
    } else {
        work(LATE * rank);
        MPI_Send(out, 1, MPI_DOUBLE, EARLY, 4, MPI_COMM_WORLD);
    }
}

/* Polling is not waiting. */
static void poll(void)
{
    MPI_Request requests[2];
    int done = 0;
    together();
    if (rank == EARLY) {
        MPI_Irecv(in, 1, MPI_DOUBLE, TARDY, 5, MPI_COMM_WORLD, &requests[0]);
        for (MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE); !done; MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE))
            work(LATE / 4);
        for (int i = 0; i < 2; i++)
            MPI_Irecv(in + i, 1, MPI_DOUBLE, TARDY, 6 + i, MPI_COMM_WORLD, &requests[i]);
        for (done = 0; !done; MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE))
            work(LATE / 4);
        expect("mpi_latesender", "poll", 0, -1);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Send(out, 1, MPI_DOUBLE, EARLY, 5, MPI_COMM_WORLD);
        work(LATE);
        MPI_Send(out, 1, MPI_DOUBLE, EARLY, 6, MPI_COMM_WORLD);
        MPI_Send(out, 1, MPI_DOUBLE, EARLY, 7, MPI_COMM_WORLD);
    }
}

/* A ring in which TARDY is late: its right neighbour waits for its message. */
static void ring(void)
{
    together();
    if (rank == TARDY)
        work(LATE);
    MPI_Sendrecv(out, SMALL, MPI_DOUBLE, (rank + 1) % size, 8, in, SMALL, MPI_DOUBLE, (rank + size - 1) % size, 8,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("mpi_latesender", "ring/MPI_Sendrecv", rank == TARDY + 1 ? LATE : 0, TARDY);
}

static void chain_without_ends(void)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[2];
    together();
    MPI_Sendrecv_replace(in, SMALL, MPI_DOUBLE, right, 9, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in, SMALL, MPI_DOUBLE, left, 10, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, SMALL, MPI_DOUBLE, right, 10, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Send(out, SMALL, MPI_DOUBLE, MPI_PROC_NULL, 11, MPI_COMM_WORLD);
    MPI_Recv(in, SMALL, MPI_DOUBLE, MPI_PROC_NULL, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void persistent(void)
{
    enum { ROUNDS = 3 };
    MPI_Request request;
    together();
    if (rank == EARLY) {
        MPI_Recv_init(in, SMALL, MPI_DOUBLE, TARDY, 12, MPI_COMM_WORLD, &request);
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
        expect("mpi_latesender", "persistent/MPI_Wait", ROUNDS * LATE, TARDY);
    } else if (rank == TARDY) {
        MPI_Send_init(out, SMALL, MPI_DOUBLE, EARLY, 12, MPI_COMM_WORLD, &request);
        for (int i = 0; i < ROUNDS; i++) {
            work(LATE);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

static void cancelled(void)
{
    MPI_Request request;
    together();
    if (rank == EARLY) {
        MPI_Irecv(in, SMALL, MPI_DOUBLE, TARDY, 13, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "cancelled", 0, -1);
    }
}

/* Whoever waits in Probe does so for a late sender too, but of that a trace of Score-P 7 has no record. */
static void probe(void)
{
    int ready = 0;
    together();
    if (rank == EARLY) {
        MPI_Probe(TARDY, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (MPI_Iprobe(TARDY, 15, MPI_COMM_WORLD, &ready, MPI_STATUS_IGNORE); !ready;
             MPI_Iprobe(TARDY, 15, MPI_COMM_WORLD, &ready, MPI_STATUS_IGNORE))
            work(LATE / 4);
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "probe/MPI_Recv", 0, -1);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 14, MPI_COMM_WORLD);
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 15, MPI_COMM_WORLD);
    }
}

/* The message awaited first was sent last: had the order been the other, nothing were waited for. */
static void wrong_order_same_source(void)
{
    together();
    if (rank == EARLY) {
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_lswo_same", "wrong_order_same_source/MPI_Recv", LATE, TARDY);
    } else if (rank == TARDY) {
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 16, MPI_COMM_WORLD);
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 17, MPI_COMM_WORLD);
    }
}

static void wrong_order_different_sources(void)
{
    together();
    if (rank == EARLY) {
        MPI_Recv(in, SMALL, MPI_DOUBLE, TARDY, 18, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(in, SMALL, MPI_DOUBLE, 2, 18, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect("mpi_lswo_different", "wrong_order_different_sources/MPI_Recv", LATE, TARDY);
    } else if (rank == 2) {
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 18, MPI_COMM_WORLD);
    } else if (rank == TARDY) {
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, EARLY, 18, MPI_COMM_WORLD);
    }
}

/* Ranks in a communicator are not ranks in the world: here 0 is rank 3, and 3 is rank 0. */
static void reversed_communicator(void)
{
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    together();
    if (rank == 3) {
        MPI_Recv(in, SMALL, MPI_DOUBLE, 3, 19, reversed, MPI_STATUS_IGNORE);
        expect("mpi_latesender", "reversed_communicator/MPI_Recv", LATE, 0);
    } else if (rank == 0) {
        work(LATE);
        MPI_Send(out, SMALL, MPI_DOUBLE, 0, 19, reversed);
    }
    MPI_Comm_free(&reversed);
}

static void to_oneself(void)
{
    MPI_Request request;
    together();
    MPI_Irecv(in, SMALL, MPI_DOUBLE, 0, 22, MPI_COMM_SELF, &request);
    MPI_Send(out, SMALL, MPI_DOUBLE, 0, 22, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("mpi_latesender+mpi_latereceiver", "to_oneself", 0, -1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    late_sender();
    late_sender_of_nothing();
    late_receiver();
    late_receiver_of_buffered();
    late_isend();
    late_irecv();
    waitall();
    waitany();
    poll();
    ring();
    chain_without_ends();
    persistent();
    cancelled();
    probe();
    wrong_order_same_source();
    wrong_order_different_sources();
    reversed_communicator();
    to_oneself();
    MPI_Finalize();
    return 0;
}
