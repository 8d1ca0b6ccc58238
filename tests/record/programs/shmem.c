/* OpenSHMEM with known delays. Each PE prints when it came to each call that can wait, by its own clock, and the results of all kinds of
   calls. Three PEs. */
#include <shmem.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define U 20000
#define CASE static __attribute__((noinline)) void

static struct { const char *what; double time; } marks[64];
static int count, me;

static long flag, counter, late, sync_area[SHMEM_COLLECT_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];
static long source[2], sums[2], all[6];
static double real;
static float small;
static long double large;
static long *lock;

static void mark(const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    marks[count].what = what;
    marks[count++].time = now.tv_sec + now.tv_nsec * 1e-9;
}

CASE barrier_late(void)
{
    if (me == 2) usleep(2 * U);
    mark("barrier_late");
    shmem_barrier_all();
}

CASE barrier_set(void)
{
    if (me == 1) return;
    if (me == 2) usleep(U);
    mark("barrier_set");
    shmem_barrier(0, 1, 2, sync_area);
}

CASE broadcast_late(void)
{
    if (me == 0) usleep(U);
    mark("broadcast_late");
    shmem_broadcast64(all, source, 2, 0, 0, 0, 3, sync_area);
}

CASE sum_late(void)
{
    if (me == 1) usleep(2 * U);
    mark("sum_late");
    shmem_long_sum_to_all(sums, source, 2, 0, 0, 3, work, sync_area);
}

CASE allocation_late(void)
{
    if (me == 1) usleep(U);
    mark("allocation_late");
    lock = shmem_calloc(1, sizeof *lock);
}

CASE signal_put(void)
{
    if (me == 2) {
        usleep(2 * U);
        mark("signal_put");
        shmem_long_p(&flag, 1, 0);
    } else if (me == 0) {
        mark("signal_put");
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
}

CASE signal_atomic(void)
{
    if (me == 1) {
        usleep(U);
        mark("signal_atomic");
        shmem_long_atomic_inc(&counter, 2);
    } else if (me == 2) {
        mark("signal_atomic");
        shmem_long_wait_until(&counter, SHMEM_CMP_GE, 1);
    }
}

CASE signal_nbi(void)
{
    static long one = 1;
    if (me == 0) {
        usleep(U);
        mark("signal_nbi");
        shmem_long_put_nbi(&late, &one, 1, 1);
        shmem_quiet();
    } else if (me == 1) {
        mark("signal_nbi");
        shmem_long_wait_until(&late, SHMEM_CMP_EQ, 1);
    }
}

CASE lock_late(void)
{
    if (me == 2) return;
    if (me == 0) usleep(U / 2);
    if (me == 0) mark("lock_late");
    shmem_set_lock(lock);
    if (me == 1) usleep(2 * U);
    shmem_clear_lock(lock);
    if (me == 1) mark("lock_late");
}

/* Values in registers of all kinds, and results. */
CASE values(void)
{
    int next = (me + 1) % 3;
    shmem_double_p(&real, me + 0.5, next);
    shmem_float_p(&small, me + 0.25f, next);
    shmem_longdouble_p(&large, me + 0.125L, next);
    shmem_barrier_all();
    printf("values %d: %g %g %Lg", me, shmem_double_g(&real, next), shmem_float_g(&small, next), shmem_longdouble_g(&large, next));
    shmem_barrier_all();
    printf(" %g", shmem_double_atomic_swap(&real, me + 0.75, next));
    shmem_barrier_all();
    printf(" %g %ld", shmem_double_atomic_fetch(&real, me), shmem_long_atomic_fetch_add(&source[0], 3, me));
    printf(" %ld %d", shmem_long_atomic_compare_swap(&source[1], source[1], 7, me), shmem_test_lock(lock) == 0 ? 1 : 0);
    shmem_barrier_all();
    if (me == 0) shmem_clear_lock(lock);
    printf(" %ld %ld %ld\n", sums[0], sums[1], all[1]);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++) sync_area[i] = SHMEM_SYNC_VALUE;
    source[0] = me + 1;
    source[1] = 10 * me;
    barrier_late();
    barrier_set();
    shmem_barrier_all();
    broadcast_late();
    shmem_barrier_all();
    sum_late();
    shmem_barrier_all();
    allocation_late();
    shmem_barrier_all();
    signal_put();
    shmem_barrier_all();
    signal_atomic();
    shmem_barrier_all();
    signal_nbi();
    shmem_barrier_all();
    lock_late();
    shmem_barrier_all();
    shmem_fcollect64(all, source, 2, 0, 0, 3, sync_area);
    shmem_barrier_all();
    if (me == 0) shmem_set_lock(lock);
    shmem_barrier_all();
    values();
    for (int i = 0; i < count; i++) printf("mark %d %s %.9f\n", me, marks[i].what, marks[i].time);
    shmem_finalize();
    return 0;
}
