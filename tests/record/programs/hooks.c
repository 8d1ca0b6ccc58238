// Calls each function that the recorder can catch of the C library where next to nothing is allowed: inside malloc while it holds its lock, in
// signal handlers, before and after the constructors and destructors of libraries, in threads that nothing is known of, and in their last
// destructors. The heap is the program's own. It prints how often something was wrong, and `done`.
//
// With -DLIBRARY, it is the library that the program is linked to, whose constructor comes before that of a preloaded library, and whose
// destructor after.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

extern atomic_int failures;

#define EXPECT(what, value) ((what) == (value) || ++failures)

struct locks {
    pthread_mutex_t mutex;
    pthread_rwlock_t table;
    pthread_spinlock_t spin;
    pthread_cond_t bell;
    pthread_barrier_t gate;
};
#define LOCKS {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER, .bell = PTHREAD_COND_INITIALIZER}

// Functions of files that need no heap: on a file without a name, as several threads and handlers do so at once.
static inline void call_files(void) {
    char bytes[16] = "";
    struct iovec parts[2] = {{bytes, 3}, {bytes + 8, 4}};
    errno = 77;
    int fd = memfd_create("hooks", 0), null = open("/dev/null", O_RDWR);
    EXPECT(fd >= 0 && null >= 0, 1);
    EXPECT(write(fd, "0123456789", 10), 10);
    EXPECT(lseek(fd, 2, SEEK_SET), 2);
    EXPECT(read(fd, bytes, 16), 8);
    EXPECT(pread(fd, bytes, 4, 5), 4);
    EXPECT(memcmp(bytes, "5678", 4), 0);
    EXPECT(preadv(fd, parts, 2, 1), 7);
    EXPECT(pwrite(fd, "abc", 3, 0), 3);
    EXPECT(readv(null, parts, 2), 0);
    EXPECT(writev(null, parts, 2), 7);
    EXPECT(fsync(fd), 0);
    char *mapped = mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(mapped != MAP_FAILED && memcmp(mapped, "abc3", 4) == 0, 1);
    munmap(mapped, 10);
    EXPECT(dup2(null, fd), fd);
    EXPECT(read(fd, bytes, 16), 0);
    EXPECT(close(fd) | close(null), 0);
    EXPECT(errno, 77);
    EXPECT(open("/none/at/all", O_RDONLY), -1);
    EXPECT(errno, ENOENT);
    EXPECT(write(-1, bytes, 1), -1);
    EXPECT(errno, EBADF);
}

// All functions that do not need the heap themselves, on locks that no one else uses.
static inline void call_all(struct locks *all) {
    const struct timespec past = {0, 0};
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 10;
    errno = 77;
    EXPECT(pthread_mutex_lock(&all->mutex), 0);
    EXPECT(pthread_mutex_trylock(&all->mutex), EBUSY);
    EXPECT(pthread_cond_timedwait(&all->bell, &all->mutex, &past), ETIMEDOUT);
    EXPECT(pthread_cond_clockwait(&all->bell, &all->mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
    EXPECT(pthread_cond_signal(&all->bell), 0);
    EXPECT(pthread_cond_broadcast(&all->bell), 0);
    EXPECT(pthread_mutex_unlock(&all->mutex), 0);
    EXPECT(pthread_mutex_timedlock(&all->mutex, &soon), 0);
    EXPECT(pthread_mutex_unlock(&all->mutex), 0);
    EXPECT(pthread_mutex_clocklock(&all->mutex, CLOCK_REALTIME, &soon), 0);
    EXPECT(pthread_mutex_unlock(&all->mutex), 0);
    EXPECT(pthread_rwlock_rdlock(&all->table), 0);
    EXPECT(pthread_rwlock_tryrdlock(&all->table), 0);
    EXPECT(pthread_rwlock_timedrdlock(&all->table, &soon), 0);
    EXPECT(pthread_rwlock_clockrdlock(&all->table, CLOCK_REALTIME, &soon), 0);
    EXPECT(pthread_rwlock_trywrlock(&all->table), EBUSY);
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_rwlock_unlock(&all->table), 0);
    EXPECT(pthread_rwlock_wrlock(&all->table), 0);
    EXPECT(pthread_rwlock_unlock(&all->table), 0);
    EXPECT(pthread_rwlock_timedwrlock(&all->table, &soon), 0);
    EXPECT(pthread_rwlock_unlock(&all->table), 0);
    EXPECT(pthread_rwlock_clockwrlock(&all->table, CLOCK_REALTIME, &soon), 0);
    EXPECT(pthread_rwlock_unlock(&all->table), 0);
    pthread_spin_init(&all->spin, 0);
    EXPECT(pthread_spin_lock(&all->spin), 0);
    EXPECT(pthread_spin_trylock(&all->spin), EBUSY);
    EXPECT(pthread_spin_unlock(&all->spin), 0);
    pthread_barrier_init(&all->gate, NULL, 1);
    EXPECT(pthread_barrier_wait(&all->gate), PTHREAD_BARRIER_SERIAL_THREAD);
    EXPECT(errno, 77);
    call_files();
}

// Streams, where the heap may be used.
static inline void call_streams(void) {
    char line[16];
    FILE *file = fopen("/proc/self/comm", "r");
    EXPECT(file && fgets(line, 16, file) == line, 1);
    EXPECT(fgetc(file), EOF);
    EXPECT(fclose(file), 0);
    EXPECT((file = fopen("/dev/null", "w")) != NULL, 1);
    EXPECT(fprintf(file, "%d %.1f %s", 1, 2.5, "x"), 7);
    EXPECT(fputs("text", file) >= 0 && fputc('c', file) == 'c' && fflush(file) == 0, 1);
    EXPECT(fclose(file), 0);
}

#ifdef LIBRARY

static struct locks early = LOCKS;

__attribute__((constructor)) static void begin(void) {
    call_all(&early);
    call_streams();
}

__attribute__((destructor)) static void end(void) {
    call_all(&early);
    call_streams();
    char line[] = "0 failures, done\n";
    line[0] += failures;
    write(1, line, sizeof line - 1);
}

void use_library(void) {}

#else

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

void use_library(void);

atomic_int failures;

// A heap with a lock, in which every 50th call uses other locks.
static atomic_flag heap = ATOMIC_FLAG_INIT;
static char *top, *end;
static struct locks of_heap = LOCKS;
static atomic_int armed;

void *malloc(size_t size) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    size = (size + 31) & ~(size_t)15;
    while (atomic_flag_test_and_set(&heap))
        ;
    if (!top || top + size > end) {
        size_t region = size + (64 << 20);
        top = mmap(0, region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = top + region;
    }
    if (armed) {
        int kept = errno;
        armed--;
        call_all(&of_heap);
        errno = kept;
    }
    char *block = top;
    top += size;
    *(size_t *)block = size - 16;
    atomic_flag_clear(&heap);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return block + 16;
}
void free(void *block) {}
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *block, size_t size) {
    void *new = malloc(size);
    if (block && new) {
        size_t old = ((size_t *)block)[-2];
        memcpy(new, block, old < size ? old : size);
    }
    return new;
}
void *memalign(size_t to, size_t size) {
    char *block = malloc(size + to);
    return (void *)(((size_t)block + to - 1) & ~(to - 1));
}
void *aligned_alloc(size_t to, size_t size) { return memalign(to, size); }
int posix_memalign(void **block, size_t to, size_t size) {
    *block = memalign(to, size);
    return 0;
}

static void allocate(int times) {
    armed = times;
    while (armed)
        *(volatile char *)malloc(100) = 1;
}

static struct locks first = LOCKS, last = LOCKS, of_exit = LOCKS;
// Any thread may get the signal.
static _Thread_local struct locks of_handler = LOCKS;
static pthread_key_t key;
static atomic_int go, stop;

static void before_all(int argc, char **argv, char **environment) { call_all(&first); }
__attribute__((section(".preinit_array"), used)) static void *preinit = before_all;

static void handle(int signal) {
    int kept = errno;
    call_all(&of_handler);
    errno = kept;
}

static void thread_ends(void *value) { call_all(&last); }

static void at_exit(void) {
    call_all(&of_exit);
    call_streams();
}

static void *nothing(void *argument) { return argument; }

// Is cancelled: functions of locks are no place where that takes effect.
static void *cancelled(void *argument) {
    static _Thread_local pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    EXPECT(pthread_cancel(pthread_self()), 0);
    EXPECT(pthread_mutex_lock(&mutex), 0);
    EXPECT(pthread_mutex_unlock(&mutex), 0);
    pthread_testcancel();
    return argument;
}

// Begun before MPI: what it does first is inside malloc.
static void *unknown(void *argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!go)
        usleep(100);
    allocate(20);
    pthread_setspecific(key, &last);
    return argument;
}

// The loader's lock and that of the heap are asked for in turns.
static void *loads(void *argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!stop) {
        void *library = dlopen(argument, RTLD_NOW);
        if (library)
            dlclose(library);
    }
    return argument;
}

int main(int argc, char **argv) {
    int provided, rank;
    pthread_t begun, loader, thread;
    void *result;
    use_library();
    atexit(at_exit);
    pthread_key_create(&key, thread_ends);
    allocate(20);
    EXPECT(pthread_create(&begun, NULL, unknown, &begun), 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(pthread_create(&loader, NULL, loads, "libutil.so.1"), 0);
    allocate(20);
    go = 1;
    EXPECT(pthread_join(begun, NULL), 0);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    raise(SIGPROF);
    // Handlers may have a small stack of their own.
    static char small[16384];
    sigaltstack(&(stack_t){.ss_sp = small, .ss_size = sizeof small}, NULL);
    struct sigaction apart = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGUSR2, &apart, NULL);
    raise(SIGUSR2);
    call_streams();
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
    for (int i = 0; i < 100; i++) {
        EXPECT(pthread_create(&thread, NULL, nothing, NULL), 0);
        if (i % 2)
            EXPECT(pthread_join(thread, NULL), 0);
        else
            EXPECT(pthread_detach(thread), 0);
        for (int k = 0; k < 100; k++)
            MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MAX, MPI_COMM_SELF);
        allocate(2);
    }
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    for (int i = 0; i < 20; i++) {
        EXPECT(pthread_create(&thread, NULL, cancelled, NULL), 0);
        EXPECT(pthread_join(thread, &result), 0);
        EXPECT(result, PTHREAD_CANCELED);
    }
    stop = 1;
    EXPECT(pthread_join(loader, NULL), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

#endif
