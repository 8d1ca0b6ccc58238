/* OpenSHMEM with known delays. Each PE prints when it came to each call that can wait, by its own clock, and the results of all kinds of
   calls. Three PEs. */
#include <fcntl.h>
#include <shmem.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define U 20000
#define CASE static __attribute__((noinline)) void

static struct { const char *what; double time; } marks[64];
static int count, me;
/* How many PEs are about to wait in a case, and whether the lock is taken: where no recorded call sees it. */
static volatile int *waiting, *locked;
static int step;

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

static void share(void)
{
    char name[64];
    /* All PEs are children of the launcher. */
    snprintf(name, sizeof name, "waiting.%d", (int)getppid());
    int file = open(name, O_CREAT | O_RDWR, 0600);
    if (ftruncate(file, 4096)) _exit(9);
    locked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    waiting = locked + 1;
}

static void await(volatile int *number, int wanted)
{
    while (*number != wanted) usleep(500);
}

/* Comes to a call: one PE is late, from when the others wait. */
static void come(const char *what, int late_pe, int others, int delay)
{
    if (me == late_pe) {
        await(&waiting[step], others);
        usleep(delay);
    } else {
        __sync_fetch_and_add(&waiting[step], 1);
    }
    mark(what);
}

CASE barrier_late(void)
{
    come("barrier_late", 2, 2, 2 * U);
    shmem_barrier_all();
}

CASE barrier_set(void)
{
    if (me == 1) return;
    come("barrier_set", 2, 1, U);
    shmem_barrier(0, 1, 2, sync_area);
}

CASE broadcast_late(void)
{
    come("broadcast_late", 0, 2, U);
    shmem_broadcast64(all, source, 2, 0, 0, 0, 3, sync_area);
}

CASE sum_late(void)
{
    come("sum_late", 1, 2, 2 * U);
    shmem_long_sum_to_all(sums, source, 2, 0, 0, 3, work, sync_area);
}

CASE allocation_late(void)
{
    come("allocation_late", 1, 2, U);
    lock = shmem_calloc(1, sizeof *lock);
}

CASE signal_put(void)
{
    if (me == 1) return;
    come("signal_put", 2, 1, 2 * U);
    if (me == 2)
        shmem_long_p(&flag, 1, 0);
    else
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
}

CASE signal_atomic(void)
{
    if (me == 0) return;
    come("signal_atomic", 1, 1, U);
    if (me == 1)
        shmem_long_atomic_inc(&counter, 2);
    else
        shmem_long_wait_until(&counter, SHMEM_CMP_GE, 1);
}

CASE signal_nbi(void)
{
    static long one = 1;
    if (me == 2) return;
    come("signal_nbi", 0, 1, U);
    if (me == 0) {
        shmem_long_put_nbi(&late, &one, 1, 1);
        shmem_quiet();
    } else {
        shmem_long_wait_until(&late, SHMEM_CMP_EQ, 1);
    }
}

CASE lock_late(void)
{
    if (me == 2) return;
    if (me == 0) {
        await(locked, 1);
        come("lock_late", 1, 1, 0);
    }
    shmem_set_lock(lock);
    if (me == 1) {
        *locked = 1;
        await(&waiting[step], 1);
        usleep(2 * U);
    }
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

#define RUN(function) (step++, function())

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    share();
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++) sync_area[i] = SHMEM_SYNC_VALUE;
    source[0] = me + 1;
    source[1] = 10 * me;
    RUN(barrier_late);
    RUN(barrier_set);
    shmem_barrier_all();
    RUN(broadcast_late);
    shmem_barrier_all();
    RUN(sum_late);
    shmem_barrier_all();
    RUN(allocation_late);
    shmem_barrier_all();
    RUN(signal_put);
    shmem_barrier_all();
    RUN(signal_atomic);
    shmem_barrier_all();
    RUN(signal_nbi);
    shmem_barrier_all();
    RUN(lock_late);
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
