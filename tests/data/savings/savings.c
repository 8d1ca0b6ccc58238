/* Programs that lose time in a known way, and the same programs changed, for tests/test_savings.py.
 *
 *   savings PROGRAM before|after
 *
 * Work is sleep, so that ranks do not share cores. What a change saves, in units of UNIT, is derived beside each program. 4 ranks;
 * `staircase` takes 6. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEPS = 10 };
#define UNIT 20e-3
static int rank, size, after;

static void work(double units) {
    double seconds = units * UNIT;
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    if (units > 0) nanosleep(&time, NULL);
}

/* Recordings know which function runs from its first call of MPI to its last one. */
#define BEGIN MPI_Barrier(MPI_COMM_SELF)
#define END BEGIN

static double all;
#define SUM(OWN) MPI_Allreduce(&(double){OWN}, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

/* Rank 3 works 5, the others 1; balanced 2: saves 3 a step. */
static void imbalance(int step) {
    BEGIN;
    work(after ? 2 : rank == 3 ? 5 : 1);
    SUM(step);
}

/* Ranks 0 and 1 work 3, ranks 2 and 3 work 1; balanced 2: saves 1 a step. */
static void groups(int step) {
    BEGIN;
    work(after ? 2 : rank < 2 ? 3 : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)step;
}

/* Rank r works 2.5 r before a tree; balanced, all work 6.25 of 12.5: saves 6.25 a step. */
static void staircase(int step) {
    double own = step;
    BEGIN;
    work(2.5 * (after ? (size - 1) / 2.0 : rank));
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 decides alone for 4; distributed 1: saves 3 a step. */
static void decide(int step) {
    BEGIN;
    work(after ? 1 : rank == 0 ? 4 : 0);
    MPI_Bcast(&step, 1, MPI_INT, 0, MPI_COMM_WORLD);
}
static void alone(int step) {
    decide(step);
    work(1);
    SUM(step);
}

/* Another rank is late by 3 each time, and nobody needs the barrier: without, each rank works 10 x 1 and 2 or 3 times 3 more. The
 * ranks that are late three times end after 19 instead of 40: saves 21 in all. */
static void noise(int step) {
    BEGIN;
    work(step % size == rank ? 4 : 1);
    if (!after) MPI_Barrier(MPI_COMM_WORLD);
}

/* Half the kernel: 2 instead of 4 on all ranks: saves 2 a step. */
static void kernel(int step) {
    BEGIN;
    work(after ? 2 : 4);
    SUM(step);
}
static void faster(int step) {
    kernel(step);
    work(1);
    SUM(step);
}

/* Rank 0 prepares for 1 while rank 1 works 4: twice as fast, that saves nothing. */
static void prepare(int step) {
    BEGIN;
    work(rank == 0 ? (after ? 0.5 : 1) : rank == 1 ? 4 : 2);
    SUM(step);
}

/* Rank 0 works 2, and sends; rank 1 waits, and works 2. Twice as fast, rank 0 saves 1 a step. */
static void produce(int step) {
    BEGIN;
    work(after ? 1 : 2);
    MPI_Send(&step, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
}
static void consume(int step) {
    MPI_Recv(&step, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(2);
}
static void sender(int step) {
    if (rank == 0) produce(step);
    else if (rank == 1) consume(step);
    SUM(step);
}

/* At the end, rank 0 writes for 40 while the others wait; a quarter faster saves 10 in all. */
static void write_results(void) {
    int done = 1;
    BEGIN;
    if (rank == 0) work(after ? 30 : 40);
    MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_SELF);
}
static void tail(int step) {
    work(1);
    SUM(step);
    if (step == STEPS - 1) write_results();
}

/* Messages are waited for before the work of 3, though they come after 2: overlapped, saves 2 a step. */
static void overlap(int step) {
    int in, out = step;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    BEGIN;
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
    if (rank == 0) work(2);
    MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    if (!after) MPI_Waitall(2, requests, statuses);
    work(rank == 0 ? 1 : 3);
    if (after) MPI_Waitall(2, requests, statuses);
    SUM(step);
}

/* A pipeline over the ranks: each works 1 after the one before it. Twice as fast, a step of 4 takes 2: saves 2. */
static void stage(int step) {
    BEGIN;
    if (rank > 0) MPI_Recv(&step, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(after ? 0.5 : 1);
    if (rank + 1 < size) MPI_Send(&step, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
    END;
}
static void pipeline(int step) {
    stage(step);
    SUM(step);
}

/* A master takes 1 for each of 3 requests a step, workers 2. Twice as fast, a step of 1 + 1 + 1 + 2 takes 3.5: saves 1.5. */
static void serve(int step) {
    int i, task = step;
    MPI_Status status;
    for (i = 1; i < size; i++) {
        MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        work(after ? 0.5 : 1);
        MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
    }
}
static void ask(int step) {
    MPI_Send(&step, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&step, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(2);
}
static void master(int step) {
    if (rank == 0) serve(step);
    else ask(step);
    SUM(step);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*step)(int);
    } programs[] = {{"imbalance", imbalance}, {"groups", groups}, {"staircase", staircase}, {"alone", alone},
                    {"noise", noise},         {"faster", faster}, {"prepare", prepare},     {"sender", sender},
                    {"tail", tail},           {"overlap", overlap}, {"pipeline", pipeline}, {"master", master}};
    double begin;
    int i, step;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    after = argc > 2 && !strcmp(argv[2], "after");
    for (i = 0; i < (int)(sizeof programs / sizeof *programs); i++) {
        if (argc < 2 || strcmp(argv[1], programs[i].name)) continue;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (step = 0; step < STEPS; step++) programs[i].step(step);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("%s %s %.6f\n", argv[1], argv[2], MPI_Wtime() - begin);
    }
    MPI_Finalize();
    return 0;
}
