/* OpenSHMEM as it was before 1.2: the process just ends. */
#include <shmem.h>

int main(void)
{
    start_pes(0);
    shmem_barrier_all();
    return 0;
}
