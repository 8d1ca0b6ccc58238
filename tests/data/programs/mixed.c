/*
 * Everything at once, as real programs do it: windows on all ranks and on few, in another order; epochs of one window
 * inside those of another; every kind of lock, flush, operation and request; messages and collectives in between.
 */
#include <mpi.h>

#include "known.h"

enum { COUNT = 64, ROUNDS = 3 };
static const double LATE = 20, LATER = 10;
static const char *const FENCE = "mpi_rma_wait_at_fence", *const EITHER = "mpi_latesender+mpi_rma_sync_wait_for_progress";
static const char *const ORIGIN = "mpi_rma_sync_late_post+mpi_rma_comm_late_post+mpi_rma_comm_wait_for_progress";

static int rank, size;
static double local[COUNT], one = 1;

static MPI_Group group_of(int n, const int ranks[])
{
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

/* Fences of a window on few ranks, counted from behind: to others, to oneself, to nobody, and of nothing. */
static void fences(MPI_Comm few)
{
    double memory[COUNT] = {0};
    MPI_Win window;
    int me, n;
    MPI_Comm_rank(few, &me);
    MPI_Comm_size(few, &n);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, few, &window);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(local, 4, MPI_DOUBLE, (me + 1) % n, 0, 4, MPI_DOUBLE, window);
    MPI_Get(local + 8, 4, MPI_DOUBLE, me, 8, 4, MPI_DOUBLE, window);
    MPI_Put(local, 0, MPI_DOUBLE, (me + 1) % n, 0, 0, MPI_DOUBLE, window);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, (me + 1) % n, 16, 1, MPI_DOUBLE, MPI_SUM, window);
    if (me == n - 1)
        work(LATE);
    else
        expect(FENCE, "fences/MPI_Win_fence", LATE, 1);
    MPI_Win_fence(0, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_free(&window);
}

static void exchange(MPI_Win exposed, MPI_Win locked, int distance)
{
    const int to = (rank + distance) % size, from = (rank + size - distance) % size;
    MPI_Group targets = group_of(1, &to), origins = group_of(1, &from);
    MPI_Win_post(origins, 0, exposed);
    MPI_Win_start(targets, 0, exposed);
    MPI_Put(local, 8, MPI_DOUBLE, to, 8 * rank, 8, MPI_DOUBLE, exposed);
    MPI_Fetch_and_op(&one, &local[40], MPI_DOUBLE, to, 50, MPI_SUM, locked);
    MPI_Win_complete(exposed);
    MPI_Win_flush_local(to, locked);
    MPI_Win_wait(exposed);
    MPI_Group_free(&targets);
    MPI_Group_free(&origins);
}

static void late_exchange(MPI_Win exposed, MPI_Win locked)
{
    if (rank == 2)
        work(LATE);
    exchange(exposed, locked, 1);
    if (rank == 1)
        expect(ORIGIN, "late_exchange/exchange", LATE, 2);
}

/* Each round other groups; a lock of all on a second window stays open around them. */
static void groups_within_lock_all(MPI_Win exposed, MPI_Win locked)
{
    MPI_Win_lock_all(0, locked);
    MPI_Barrier(MPI_COMM_WORLD);
    late_exchange(exposed, locked);
    for (int distance = 1; distance < size; distance++) {
        MPI_Barrier(MPI_COMM_WORLD);
        exchange(exposed, locked, distance);
    }
    MPI_Win_flush_local_all(locked);
    MPI_Win_flush_all(locked);
    MPI_Win_sync(locked);
    MPI_Win_unlock_all(locked);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Requests of messages and of one-sided operations, completed by each of the calls that can. */
static void requests(MPI_Win window)
{
    MPI_Request request[5];
    MPI_Status status;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag = 0, index, done, indices[5];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    MPI_Rput(local, 4, MPI_DOUBLE, right, 0, 4, MPI_DOUBLE, window, &request[0]);
    MPI_Rget(local + 8, 4, MPI_DOUBLE, right, 8, 4, MPI_DOUBLE, window, &request[1]);
    MPI_Raccumulate(&one, 1, MPI_DOUBLE, right, 16, 1, MPI_DOUBLE, MPI_SUM, window, &request[2]);
    MPI_Irecv(local + 16, 4, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &request[3]);
    MPI_Isend(local, 4, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &request[4]);
    MPI_Waitany(5, request, &index, &status);
    MPI_Waitsome(5, request, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(5, request, MPI_STATUSES_IGNORE);
    MPI_Rget_accumulate(&one, 1, MPI_DOUBLE, local + 24, 1, MPI_DOUBLE, right, 17, 1, MPI_DOUBLE, MPI_SUM, window,
                        &request[0]);
    while (!flag)
        MPI_Test(&request[0], &flag, &status);
    for (int i = 0; i < 2; i++)
        MPI_Rget(local + 8, 4, MPI_DOUBLE, right, 8, 4, MPI_DOUBLE, window, &request[i]);
    for (flag = 0; !flag;)
        MPI_Testany(2, request, &index, &flag, &status);
    for (flag = 0; !flag;)
        MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
    MPI_Rput(local, 4, MPI_DOUBLE, right, 0, 4, MPI_DOUBLE, window, &request[0]);
    for (done = 0; done != 1;)
        MPI_Testsome(1, request, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Win_unlock(right, window);
    MPI_Send_init(local, 4, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &request[0]);
    MPI_Recv_init(local + 16, 4, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &request[1]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(2, request);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One call that waits for a message, which is late, and for a target, which is even later. */
static void message_and_target(MPI_Win window)
{
    MPI_Request request[2];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Get(local, 4, MPI_DOUBLE, 0, 8, 4, MPI_DOUBLE, window);
        MPI_Win_flush(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        work(LATE);
    } else if (rank == 2) {
        work(LATER);
        MPI_Send(local, 4, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Irecv(local + 16, 4, MPI_DOUBLE, 2, 3, MPI_COMM_WORLD, &request[0]);
        MPI_Rget(local + 8, 4, MPI_DOUBLE, 0, 8, 4, MPI_DOUBLE, window, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        expect(EITHER, "message_and_target/MPI_Waitall", LATE, -1);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Locks of every kind, nested in one another on two windows; atomics of every kind, and a flush after each. */
static void locks(MPI_Win first, MPI_Win second)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    long zero = 0, mine = rank, seen;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, left, MPI_MODE_NOCHECK, first);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, second);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, right, 20, 1, MPI_DOUBLE, MPI_SUM, second);
    MPI_Win_flush(right, second);
    MPI_Get_accumulate(&one, 1, MPI_DOUBLE, local, 1, MPI_DOUBLE, left, 20, 1, MPI_DOUBLE, MPI_SUM, first);
    MPI_Win_flush(left, first);
    MPI_Compare_and_swap(&mine, &zero, &seen, MPI_LONG, right, 21, second);
    MPI_Win_unlock(right, second);
    MPI_Win_flush_local(left, first);
    MPI_Win_unlock(left, first);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, first);
    MPI_Put(local, 1, MPI_DOUBLE, rank, 22, 1, MPI_DOUBLE, first);
    MPI_Win_unlock(rank, first);
    MPI_Allreduce(MPI_IN_PLACE, local, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    double *first_memory, second_memory[COUNT] = {0};
    MPI_Win first, second;
    MPI_Comm few;
    MPI_Group group;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, -rank, &few);
    MPI_Win_allocate(COUNT * sizeof *first_memory, sizeof *first_memory, MPI_INFO_NULL, MPI_COMM_WORLD, &first_memory,
                     &first);
    MPI_Win_create(second_memory, sizeof second_memory, sizeof *second_memory, MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    MPI_Win_set_name(first, "first");
    MPI_Win_get_group(first, &group);
    MPI_Group_free(&group);
    for (int i = 0; i < COUNT; i++)
        first_memory[i] = 0;
    if (rank > 0)
        fences(few);
    groups_within_lock_all(first, second);
    requests(first);
    message_and_target(second);
    locks(first, second);
    MPI_Win_free(&second);
    MPI_Win_free(&first);
    MPI_Comm_free(&few);
    MPI_Finalize();
    return 0;
}
