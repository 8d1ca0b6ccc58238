/* Programs before and after a change, for tests/record/changes.py: what `whywait whatif` predicts from a recording of the one,
 * a run of the other shows.
 *
 *   changes PROGRAM before|after
 *
 * Rank 0 prints how long the steps took: "PROGRAM seconds". Work is sleep, so that ranks do not share cores. 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEPS = 24, WORDS = 256 };
#define UNIT 8e-3
static int rank, size, after;
static int in[2][WORDS], out[WORDS], all[4 * WORDS], *memory;
static MPI_Win window;
static MPI_Group partners;

static void work(double units) {
    double seconds = units * UNIT;
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    if (units > 0) nanosleep(&time, NULL);
}

/* Recordings know which function runs from its first call of MPI to its last one. */
#define BEGIN MPI_Barrier(MPI_COMM_SELF)
#define END BEGIN

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }
static void sum(void) {
    int own = rank, total;
    MPI_Allreduce(&own, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
/* Exchange a message with both neighbors of a ring. */
static void halo(int tag) {
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Irecv(in[0], WORDS, MPI_INT, left(), tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], WORDS, MPI_INT, right(), tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, WORDS, MPI_INT, left(), tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out, WORDS, MPI_INT, right(), tag, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
}

/* Rank 0 has a corner with much to do, and its neighbors more than the one opposite; balanced after. */
static void relax(void) {
    static const double units[] = {4, 2, 1, 2};
    BEGIN;
    work(after ? 9 / 4.0 : units[rank]);
    END;
}
static void corner(int step) {
    relax();
    halo(1);
    if (step % 8 == 7) sum();
}

/* In each step, another rank works longer; balanced after. */
static void advance(int step) {
    BEGIN;
    work(after ? 9 / 4.0 : step * 3 % size == rank ? 6 : 1);
    END;
}
static void drift(int step) {
    advance(step);
    halo(1);
}

/* A sum that nobody needs makes all wait for the rank that is late, another one each time. */
static void residual(int step) {
    BEGIN;
    work((step * 7 + rank * 5) % 4);
    if (!after) sum();
    END;
}

/* Every fourth step, rank 0 writes a checkpoint alone while the others wait; no checkpoints after. */
static void save(void) {
    int done = 1;
    MPI_Gather(out, WORDS, MPI_INT, all, WORDS, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) work(8);
    MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
}
static void checkpoint(int step) {
    BEGIN;
    work(1 + (rank + step) % 2);
    halo(1);
    if (step % 4 == 3 && !after) save();
}

/* Ranks pass a message around a ring before they work; after the change, it travels meanwhile. */
static void pass(int step) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    BEGIN;
    work(step % size == rank ? 3 : 0);
    if (after) {
        MPI_Irecv(in[0], WORDS, MPI_INT, left(), 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, WORDS, MPI_INT, right(), 1, MPI_COMM_WORLD, &requests[1]);
    } else
        MPI_Sendrecv(out, WORDS, MPI_INT, right(), 1, in[0], WORDS, MPI_INT, left(), 1, MPI_COMM_WORLD, statuses);
    work(2);
    if (after) MPI_Waitall(2, requests, statuses);
    END;
}

/* The sum of a step is waited for before the work that does not need it; behind it after. */
static void gradient(int step) {
    int own = step, total;
    MPI_Request request;
    BEGIN;
    work(step % size == rank ? 3 : 1);
    MPI_Iallreduce(&own, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (!after) MPI_Wait(&request, MPI_STATUS_IGNORE);
    work(2);
    if (after) MPI_Wait(&request, MPI_STATUS_IGNORE);
    END;
}

/* Even ranks send to odd ones, which receive late, synchronously before. Then the even ones have more to do. */
static void hand_over(int step) {
    int late = step % 2 ? 3 : 2;
    BEGIN;
    if (rank % 2 == 0) {
        if (after) MPI_Send(out, WORDS, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
        else MPI_Ssend(out, WORDS, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
        work(3);
    } else {
        work(late);
        MPI_Recv(in[0], WORDS, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    END;
    sum();
}

/* Even ranks send to odd ones, which receive late. With the limit of after, messages of 1024 bytes wait for that. */
static void limit(int step) {
    BEGIN;
    if (rank % 2 == 0) {
        MPI_Send(out, WORDS, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
        work(2);
    } else {
        work(step % 2 ? 2 : 1);
        MPI_Recv(in[0], WORDS, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(1);
    }
    sum();
}

/* Ranks tell each other around a ring that they are ready, with empty messages that nobody needs. */
static void ready(int step) {
    MPI_Request request;
    BEGIN;
    work(step * 3 % size == rank ? 4 : 1);
    if (!after) {
        MPI_Isend(NULL, 0, MPI_INT, right(), 2, MPI_COMM_WORLD, &request);
        MPI_Recv(NULL, 0, MPI_INT, left(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    END;
}

/* Two exchanges in each step, around a work that differs; the first one alone after. */
static void twice(int step) {
    BEGIN;
    work(step * 3 % size == rank ? 3 : 1);
    halo(1);
    work(step * 3 % size == (rank + 2) % size ? 3 : 1);
    if (!after) halo(2);
    END;
}

/* Ranks prepare, then add to a message that passes them in a row: the first one has most to prepare before, the last one after. */
static void prepare(void) {
    BEGIN;
    work(rank == (after ? size - 1 : 0) ? 6 : 1);
    END;
}
static void add(void) {
    if (rank > 0) MPI_Recv(in[0], WORDS, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(1);
    if (rank + 1 < size) MPI_Send(out, WORDS, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
}
static void row(int step) {
    prepare();
    add();
    sum();
    (void)step;
}

/* A wavefront of three blocks over the ranks; all computing is twice as fast after. */
static void wavefront(int step) {
    int block;
    BEGIN;
    for (block = 0; block < 3; block++) {
        if (rank > 0) MPI_Recv(in[0], WORDS, MPI_INT, rank - 1, block, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(after ? 0.75 : 1.5);
        if (rank + 1 < size) MPI_Send(out, WORDS, MPI_INT, rank + 1, block, MPI_COMM_WORLD);
    }
    END;
    (void)step;
}

/* All ranks change rank 0's memory under a lock, and compute a part of what they write while they hold it; half of that after. */
static void update(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(out, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_flush(0, window);
    work(after ? 0.5 : 1);
    MPI_Win_unlock(0, window);
}
static void locks(int step) {
    update();
    BEGIN;
    work(1);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)step;
}

/* Rank 0 exposes its memory after it has worked, others put into it and work; rank 0 works a third as long after. */
static void expose(void) {
    BEGIN;
    work(after ? 1 : 3);
    MPI_Win_post(partners, 0, window);
    MPI_Win_wait(window);
}
static void access_memory(void) {
    MPI_Win_start(partners, 0, window);
    MPI_Put(out, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_complete(window);
    work(2);
}
static void epochs(int step) {
    if (rank == 0) expose();
    else access_memory();
    if (step % 4 == 3) MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 collects what the others have, and works on it alone for 4 every second step; a quarter of that after. */
static void output(void) {
    MPI_Gather(out, WORDS, MPI_INT, all, WORDS, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) work(after ? 1 : 4);
    END;
}
static void collect(int step) {
    BEGIN;
    work(1.5);
    halo(1);
    if (step % 2) output();
}

/* Rank 0 decides for 3 what all get; in half of the time after. */
static void decide(void) {
    BEGIN;
    if (rank == 0) work(after ? 1.5 : 3);
    MPI_Scatter(all, WORDS, MPI_INT, in[0], WORDS, MPI_INT, 0, MPI_COMM_WORLD);
}
static void scatter(int step) {
    decide();
    BEGIN;
    work(rank == step % size ? 2 : 1);
    sum();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*step)(int);
    } programs[] = {{"corner", corner}, {"drift", drift},         {"residual", residual}, {"checkpoint", checkpoint},
                    {"pass", pass},     {"gradient", gradient},   {"hand_over", hand_over}, {"limit", limit},
                    {"ready", ready},   {"twice", twice},         {"row", row},           {"wavefront", wavefront},
                    {"locks", locks},   {"epochs", epochs},       {"collect", collect},   {"scatter", scatter}};
    double begin;
    int i, step, has_window, others[3] = {1, 2, 3}, target = 0;
    MPI_Group world;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    after = argc > 2 && !strcmp(argv[2], "after");
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 1);
    has_window = argc > 1 && (!strcmp(argv[1], "locks") || !strcmp(argv[1], "epochs"));
    if (has_window) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        if (rank == 0) MPI_Group_incl(world, 3, others, &partners);
        else MPI_Group_incl(world, 1, &target, &partners);
        MPI_Win_allocate(sizeof all, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    }
    for (i = 0; i < (int)(sizeof programs / sizeof *programs); i++) {
        if (argc < 2 || strcmp(argv[1], programs[i].name)) continue;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (step = 0; step < STEPS; step++) programs[i].step(step);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("%s %.6f\n", argv[1], MPI_Wtime() - begin);
    }
    if (has_window) MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
