// Two threads of each rank wait for each other in all ways: a mutex, a condition variable, a read-write lock, a spin lock, a
// barrier, and the end of a thread. What they wait for takes `U` microseconds or a multiple of that, from when they wait on.
// Each rank prints the most that the worker can have waited for the mutex and for the read-write lock.
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define U 30000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive, shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static int ready;
// How far both threads are; what a thread does right before it waits.
static _Atomic int step;
static double begin[2], end[2];

static void delay(int units) { usleep(units * U); }

static void await(int wanted) {
    while (step != wanted)
        usleep(1000);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *worker(void *argument) {
    pthread_barrier_wait(&barrier);
    // The main thread has the mutex for 2 U more.
    begin[0] = now();
    step = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    // It signals 2 U after this thread has the other mutex, which it leaves when it waits for the signal.
    pthread_mutex_lock(&shared);
    step = 2;
    while (!ready)
        pthread_cond_wait(&changed, &shared);
    pthread_mutex_unlock(&shared);
    pthread_barrier_wait(&barrier);
    // A writer waits for a reader.
    await(3);
    begin[1] = now();
    step = 4;
    pthread_rwlock_wrlock(&table);
    pthread_rwlock_unlock(&table);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    delay(2);
    return argument;
}

int main(int argc, char **argv) {
    int provided, rank, failures = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_t thread;
    void *result = NULL;
    failures += pthread_create(&thread, NULL, worker, &failures) != 0;
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&barrier);
    await(1);
    delay(2);
    pthread_mutex_unlock(&mutex);
    end[0] = now();
    await(2);
    delay(2);
    pthread_mutex_lock(&shared);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&shared);
    pthread_barrier_wait(&barrier);
    pthread_rwlock_rdlock(&table);
    step = 3;
    await(4);
    delay(2);
    pthread_rwlock_unlock(&table);
    end[1] = now();
    pthread_barrier_wait(&barrier);
    // Nobody signals any more, and nobody has it.
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 1000000;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    pthread_mutex_lock(&shared);
    failures += pthread_cond_timedwait(&changed, &shared, &soon) != ETIMEDOUT;
    failures += pthread_mutex_trylock(&shared) != EBUSY;
    pthread_mutex_unlock(&shared);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    failures += pthread_join(thread, &result) != 0 || result != &failures;
    printf("rank %d: %d failures\n", rank, failures);
    printf("at most %.9f %.9f\n", end[0] - begin[0], end[1] - begin[1]);
    MPI_Finalize();
    return failures;
}
