// Threads of OpenMP in two ranks: an uneven loop, a single block, a critical section, a lock, and tasks; the delays are multiples of
// U microseconds.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

#define U 20000

static omp_lock_t lock;

static void delay(int units) { usleep(units * U); }

// How often threads came to where they wait.
static _Atomic int came;

static void await(int wanted) {
    while (came < wanted)
        usleep(1000);
}

static void work(int i) { delay(1 + i % 2); }

int main(int argc, char **argv) {
    int provided, rank, sum = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    omp_init_lock(&lock);
    for (int round = 0; round < 2; round++) {
        int before = 4 * round;
#pragma omp parallel num_threads(2)
        {
            // Thread 1 has twice the work, the second half of it once the other thread is done.
#pragma omp for schedule(static, 1)
            for (int i = 0; i < 4; i++) {
                if (i == 3)
                    await(before + 1);
                work(i);
                if (i == 2)
                    came++;
            }
            came++;
#pragma omp critical
            {
                await(before + 3);
                sum++;
                delay(1);
            }
#pragma omp single
            delay(1);
            omp_set_lock(&lock);
            sum++;
            omp_unset_lock(&lock);
#pragma omp master
            MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
            // The other thread waits at the end of the region.
            if (omp_get_thread_num() == 0) {
                await(before + 4);
                delay(2);
            } else {
                came++;
            }
        }
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        for (int i = 0; i < 4; i++)
#pragma omp task
            work(i);
#pragma omp taskwait
    }
    printf("rank %d: %d\n", rank, sum);
    MPI_Finalize();
    return sum != 8;
}
