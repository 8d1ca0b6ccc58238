/*
 * Time of an MPI call on MPI_COMM_SELF, or of one that reads 512 bytes, in ns: the shortest of some rounds. Called by record.py.
 *
 *     record CASE FRAMES CALLS ROUNDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double out, in;
static FILE *stream;
static char piece[512];

static void call(const char *what)
{
    if (what[0] == 'r') {
        if (read(fileno(stream), piece, sizeof piece) == 0)
            lseek(fileno(stream), 0, SEEK_SET);
    } else if (what[0] == 'f') {
        if (fread(piece, 1, sizeof piece, stream) == 0)
            rewind(stream);
    } else if (what[0] == 'a') {
        MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    } else {
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Instructions are counted in it. */
__attribute__((noinline)) static double measure(const char *what, int calls, int rounds)
{
    double best = 1e300;
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int i = 0; i < calls; i++)
            call(what);
        double time = (now() - begin) / calls;
        if (time < best)
            best = time;
    }
    return best;
}

/* So many frames between main and the calls. */
__attribute__((noinline)) static double deep(int frames, const char *what, int calls, int rounds)
{
    volatile char frame[16] = {0};
    double time = frames > 0 ? deep(frames - 1, what, calls, rounds) : measure(what, calls, rounds);
    return time + frame[0];
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    MPI_Init(&argc, &argv);
    stream = tmpfile();
    for (int i = 0; i < 2048; i++)
        fwrite(piece, 1, sizeof piece, stream);
    rewind(stream);
    double time = deep(atoi(argv[2]), argv[1], atoi(argv[3]), atoi(argv[4]));
    MPI_Finalize();
    printf("%.2f\n", time);
    return 0;
}
