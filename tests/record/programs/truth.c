/* One-sided programs that know what they wait for.

   usage: truth SCENARIO TURNS

   WINDOW=created in the environment makes the window of memory that others cannot reach without its owner.

   Rank 0 waits, in each turn, for about 30 ms. Ranks 0 and 1 note when they begin and end what matters, and rank 0 prints
   the sum of what it has waited, from these times: "truth SECONDS". A call that ended before what it might have waited for
   began has waited for nothing, so the same program is right for libraries that need their target and for others. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define U 0.030
#define MOST 100

static int rank, turns;
static int local[1024], *base;
static MPI_Win win;
/* Begin and end of what each rank does in a turn: two calls of rank 0, and what these may have waited for. All clocks are
   the node's.

   | | rank 0 | rank 1 | rank 0 has waited |
   |---|---|---|---|
   | lock | calls | its unlock | until its call or the unlock ends |
   | access | calls | the end of a barrier, and its next call | from when rank 1 is outside MPI to its next call |
   | others | calls | its calls | until rank 1's call begins | */
static double from[2 * MOST], to[2 * MOST];
enum { LOCK, ACCESS, CALL } kind = CALL;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Sleeps outside of MPI: on a busy machine, computing would take more than its time. */
static void away(double seconds)
{
    struct timespec t = {0, (long)(1e9 * seconds)};
    nanosleep(&t, NULL);
}

static void put(int target)
{
    MPI_Put(local, 1, MPI_INT, target, rank, 1, MPI_INT, win);
}

/* A lock of rank 2's memory: rank 1 holds it, rank 0 wants it. `how` is what rank 0 asks for. */
static void lock(int turn, int owner, int how, int touch)
{
    kind = LOCK;
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, win);
        if (touch)
            put(owner);
        MPI_Win_flush(owner, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        away(U);
        from[turn] = now();
        MPI_Win_unlock(owner, win);
        to[turn] = now();
    } else if (rank == 0) {
        away(U / 3);
        from[turn] = now();
        if (how < 0)
            MPI_Win_lock_all(0, win);
        else
            MPI_Win_lock(how, owner, 0, win);
        put(owner);
        MPI_Win_flush(owner, win);
        to[turn] = from[MOST + turn] = now();
        if (how < 0)
            MPI_Win_unlock_all(win);
        else
            MPI_Win_unlock(owner, win);
        to[MOST + turn] = now();
    }
    if (rank == 1) {
        from[MOST + turn] = from[turn];
        to[MOST + turn] = to[turn];
    }
}

/* Rank 0 needs rank 1, which is away. */
static void access_(int turn, const char *what)
{
    kind = ACCESS;
    if (rank == 0) {
        MPI_Request request;
        double answer[1] = {0}, one = 1;
        if (strcmp(what, "lock"))
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (strcmp(what, "passing"))
            away(U / 6);
        from[turn] = now();
        if (!strcmp(what, "flush") || !strcmp(what, "passing")) {
            put(1);
            from[turn] = now();
            MPI_Win_flush(1, win);
        } else if (!strcmp(what, "get")) {
            MPI_Get(local, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
            from[turn] = now();
            MPI_Win_flush_local(1, win);
        } else if (!strcmp(what, "request")) {
            MPI_Rget(local, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request);
            from[turn] = now();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (!strcmp(what, "atomic")) {
            MPI_Fetch_and_op(&one, answer, MPI_DOUBLE, 1, 1, MPI_SUM, win);
            from[turn] = now();
            MPI_Win_flush(1, win);
        } else if (!strcmp(what, "accumulate")) {
            MPI_Accumulate(local, 8, MPI_INT, 1, 0, 8, MPI_INT, MPI_SUM, win);
            from[turn] = now();
            MPI_Win_flush(1, win);
        } else {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        }
        to[turn] = from[MOST + turn] = now();
        MPI_Win_unlock(1, win);
        to[MOST + turn] = now();
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        to[turn] = now();
        if (rank == 1)
            away(U);
        from[turn] = from[MOST + turn] = now();
        to[MOST + turn] = to[turn];
    }
}

static void fence(int turn)
{
    for (int end = 0; end < 2; end++) {
        from[end * MOST + turn] = now();
        MPI_Win_fence(0, win);
        to[end * MOST + turn] = now();
        if (!end && rank == 0)
            put(1);
        else if (!end && rank == 1)
            away(U);
    }
}

/* Rank 1 exposes its memory late, and is asked to wait for rank 0, which completes late. */
static void pscw(int turn, int late)
{
    MPI_Group all, other;
    int partner = 1 - rank;
    if (rank > 1)
        return;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &partner, &other);
    if ((late == 0) == (rank == 0)) {
        /* The origin. */
        if (late == 1)
            MPI_Win_start(other, 0, win);
        else {
            from[turn] = now();
            MPI_Win_start(other, 0, win);
            to[turn] = now();
        }
        put(partner);
        if (late == 1)
            away(U);
        if (late == 1 || to[turn] - from[turn] < U / 2)
            from[turn] = now();
        MPI_Win_complete(win);
        to[turn] = now();
    } else {
        if (late == 0)
            away(U);
        if (late == 0)
            from[turn] = now();
        MPI_Win_post(other, 0, win);
        if (late == 1)
            from[turn] = now();
        MPI_Win_wait(win);
        to[turn] = now();
    }
    MPI_Group_free(&other);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "flush";
    turns = argc > 2 ? atoi(argv[2]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int of_shared = !strcmp(what, "shared");
    if (of_shared)
        MPI_Win_allocate_shared(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    else if (getenv("WINDOW")) {
        base = calloc(4096, 1);
        MPI_Win_create(base, 4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else
        MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    for (int turn = 0; turn < turns; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (!strcmp(what, "contention"))
            lock(turn, 2, MPI_LOCK_EXCLUSIVE, 1);
        else if (!strcmp(what, "reader"))
            lock(turn, 2, MPI_LOCK_SHARED, 1);
        else if (!strcmp(what, "lock_all"))
            lock(turn, 2, -1, 1);
        else if (!strcmp(what, "holder") || of_shared)
            lock(turn, 1, MPI_LOCK_EXCLUSIVE, 0);
        else if (!strcmp(what, "fence"))
            fence(turn);
        else if (!strcmp(what, "late_post"))
            pscw(turn, 0);
        else if (!strcmp(what, "early_wait"))
            pscw(turn, 1);
        else
            access_(turn, what);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double others[4 * MOST] = {0}, sum = 0, *began = others, *ended = others + 2 * MOST;
    if (rank == 1) {
        memcpy(others, from, sizeof from);
        memcpy(others + 2 * MOST, to, sizeof to);
        MPI_Send(others, 4 * MOST, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Recv(others, 4 * MOST, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2 * MOST; i++) {
            double since = kind == ACCESS && ended[i] > from[i] ? ended[i] : from[i];
            double until = kind != LOCK ? began[i] : ended[i] < to[i] ? ended[i] : to[i];
            if (to[i] >= began[i] && until > since)
                sum += until - since;
        }
        printf("truth %.6f\n", sum);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
