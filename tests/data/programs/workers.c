/* Four threads. First each of them computes and writes to one log, which only one at a time may do: they wait for each
 * other's turn. Then they run tasks, one of which takes much longer than the others: all wait for it.
 *
 * Work is sleep, so that its length does not depend on the number of cores. */
#include <mpi.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 10, TASKS = 24 };

static void work(double milliseconds) {
    struct timespec time = {0, (long)(milliseconds * 1e6)};
    nanosleep(&time, 0);
}

static void compute(void) {
    work(2);
}

static void write_log(void) {
    work(3);
}

static void solve(void) {
    for (int round = 0; round < ROUNDS; ++round) {
        compute();
#pragma omp critical(log)
        write_log();
    }
}

static void refine(int number) {
    work(number == TASKS - 1 ? 30 : 2);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
#pragma omp parallel num_threads(THREADS)
    solve();
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    for (int number = 0; number < TASKS; ++number) {
#pragma omp task firstprivate(number)
        refine(number);
    }
    MPI_Finalize();
    return 0;
}
