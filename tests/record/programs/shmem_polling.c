/* PE 0 tests again and again whether PE 1, which is late, has changed a variable. */
#include <shmem.h>
#include <time.h>

static int *flag;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(void)
{
    shmem_init();
    flag = shmem_calloc(1, sizeof *flag);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        while (!shmem_int_test(flag, SHMEM_CMP_EQ, 1)) { }
    } else {
        double begin = now();
        while (now() - begin < 0.04) { }
        shmem_int_p(flag, 1, 0);
        shmem_quiet();
    }
    shmem_barrier_all();
    shmem_finalize();
}
