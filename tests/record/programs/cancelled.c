// A thread is cancelled while it waits for a condition, and another one still runs when the process ends.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void unlock(void *lock) { pthread_mutex_unlock(lock); }

static void *waits(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
    return argument;
}

static void *sleeps(void *argument) {
    sleep(60);
    return argument;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_t cancelled, running;
    void *result;
    pthread_create(&cancelled, NULL, waits, NULL);
    pthread_create(&running, NULL, sleeps, NULL);
    usleep(50000);
    pthread_cancel(cancelled);
    pthread_join(cancelled, &result);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    if (result == PTHREAD_CANCELED)
        printf("cancelled\n");
    MPI_Finalize();
    return 0;
}
