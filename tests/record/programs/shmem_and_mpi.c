/* MPI and OpenSHMEM in one program: with Open MPI, shmem_finalize ends both. */
#include <mpi.h>
#include <shmem.h>

static long flag;

int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    shmem_init();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    shmem_long_p(&flag, sum, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    shmem_finalize();
    return flag != sum;
}
