/* Threads of OpenMP that call MPI in the bodies of a parallel region and of tasks. */
#include <mpi.h>

static MPI_Comm comms[2];

__attribute__((noinline)) static void exchange(int thread)
{
    int x = thread, y;
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comms[thread]);
}

__attribute__((noinline)) static void solve(void)
{
#pragma omp parallel num_threads(2)
    {
        int x, y, thread;
#pragma omp for schedule(static)
        for (thread = 0; thread < 2; thread++) {
            x = thread;
            MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comms[thread]);
            exchange(thread);
        }
    }
}

/* Both threads are in a task at the same time, so each has one. */
__attribute__((noinline)) static void tasks(void)
{
    int waiting = 2;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 2; i++) {
#pragma omp task firstprivate(i) shared(waiting)
        {
            int x = i, y;
            __sync_fetch_and_sub(&waiting, 1);
            while (*(volatile int *)&waiting) { }
            MPI_Sendrecv(&x, 1, MPI_INT, 0, i, &y, 1, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    solve();
    tasks();
    MPI_Finalize();
}
