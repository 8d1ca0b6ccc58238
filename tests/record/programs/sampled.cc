// What signals of a sampler might disturb: each part prints what it found, which is the same without a sampler.
// usage: sampled PART MILLISECONDS
#include <dlfcn.h>
#include <errno.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

static double now(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

// Computes for a while, in CPU time.
__attribute__((noinline)) static unsigned work(double seconds) {
    unsigned x = 1;
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 2000; i++) x = x * 1664525u + 1013904223u;
    return x;
}

// Calls that nothing restarts, and how many of them end early.
static void sleeps(double seconds) {
    int early = 0, other = 0;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    int queue = epoll_create1(0);
    epoll_event event;
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end;) {
        timespec pause = {0, 1000000}, until;
        timeval wait = {0, 1000};
        work(0.002);
        early += nanosleep(&pause, nullptr) != 0;
        early += poll(nullptr, 0, 1) != 0;
        early += select(0, nullptr, nullptr, nullptr, &wait) != 0;
        early += epoll_wait(queue, &event, 1, 1) != 0;
        early += usleep(1000) != 0;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        other += sem_timedwait(&semaphore, &until) == 0 || errno != ETIMEDOUT;
    }
    printf("early %d, other %d\n", early, other);
}

// Children of all kinds; those that are forked compute for longer than a period.
static void children(double seconds) {
    int wrong = 0;
    char *words[] = {const_cast<char *>("true"), nullptr};
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end;) {
        int status = 0;
        work(0.002);
        pid_t child = fork();
        if (child == 0) {
            work(0.005);
            _exit(17);
        }
        wrong += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 17;
        child = vfork();
        if (child == 0) {
            execvp("true", words);
            _exit(1);
        }
        wrong += waitpid(child, &status, 0) != child || status != 0;
        wrong += posix_spawnp(&child, "true", nullptr, nullptr, words, environ) != 0;
        wrong += waitpid(child, &status, 0) != child || status != 0;
        wrong += system("exit 3") != 3 << 8;
        // What is pending when another program begins must not end it.
        child = fork();
        if (child == 0) {
            sigset_t all;
            sigfillset(&all);
            sigprocmask(SIG_BLOCK, &all, nullptr);
            work(0.003);
            char *shell[] = {const_cast<char *>("sh"), const_cast<char *>("-c"), const_cast<char *>("exit 5"), nullptr};
            execvp("sh", shell);
            _exit(1);
        }
        wrong += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5;
    }
    printf("wrong %d\n", wrong);
}

__attribute__((noinline)) static int throws(int depth, int value) {
    if (depth == 0) throw value;
    return throws(depth - 1, value) + 1;
}

// Exceptions while libraries come and go.
static void exceptions(double seconds) {
    long wrong = 0, count = 0;
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end; count++) {
        try {
            throws(8, static_cast<int>(count));
            wrong++;
        } catch (int caught) {
            wrong += caught != count;
        }
        if (count % 100 == 0)
            if (void *library = dlopen("libresolv.so.2", RTLD_NOW)) dlclose(library);
    }
    printf("wrong %ld\n", wrong);
}

static void *short_thread(void *argument) {
    unsigned *value = static_cast<unsigned *>(argument);
    work(*value % 4 == 0 ? 0.003 : 0);
    *value += 1;
    return argument;
}

// Many threads, few of which are sampled; some block all signals.
static void threads(double seconds) {
    long wrong = 0;
    unsigned values[4];
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end;) {
        pthread_t made[4];
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        for (unsigned i = 0; i < 4; i++) values[i] = i, wrong += pthread_create(&made[i], nullptr, short_thread, &values[i]) != 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        for (unsigned i = 0; i < 4; i++) {
            void *value = nullptr;
            wrong += pthread_join(made[i], &value) != 0 || value != &values[i] || values[i] != i + 1;
        }
    }
    printf("wrong %ld\n", wrong);
}

static volatile sig_atomic_t handled, nested;
static void handle(int) {
    handled++;
    work(0.0001);
}

static ucontext_t outer, inner;
static void on_own_stack() {
    for (;;) {
        work(0.002);
        nested++;
        swapcontext(&inner, &outer);
    }
}

// Small stacks of the program's own, for signals and for coroutines, and many signals.
static void stacks(double seconds) {
    static char for_signals[16384], for_coroutine[16384];
    stack_t stack = {};
    stack.ss_sp = for_signals;
    stack.ss_size = sizeof for_signals;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    getcontext(&inner);
    inner.uc_stack.ss_sp = for_coroutine;
    inner.uc_stack.ss_size = sizeof for_coroutine;
    inner.uc_link = &outer;
    makecontext(&inner, on_own_stack, 0);
    long rounds = 0;
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end; rounds++) {
        for (int i = 0; i < 20; i++) raise(SIGUSR1);
        swapcontext(&outer, &inner);
    }
    printf("wrong %d\n", (handled != 20 * rounds) + (nested != rounds));
}

// The program takes the signal of the sampler for itself.
static void takes(double seconds) {
    work(seconds / 2);
    struct sigaction action = {}, before;
    action.sa_handler = handle;
    sigaction(SIGURG, &action, &before);
    for (int i = 0; i < 10; i++) raise(SIGURG), work(seconds / 10);
    // One that was on its way may have come.
    printf("wrong %d\n", handled < 10 || handled > 11);
}

// Functions of known shares of the instructions: 60, 30, and 10 %.
#define WORKER(NAME) \
    __attribute__((noinline, noclone)) static unsigned long NAME(int units, unsigned long x) { \
        for (long i = 0; i < 20000L * units; i++) { \
            x = x * 6364136223846793005ul + 1442695040888963407ul; \
            __asm__ volatile("# " #NAME : "+r"(x)); \
        } \
        return x; \
    }
WORKER(most)
WORKER(some)
WORKER(little)
__attribute__((noinline)) static unsigned long step(unsigned long x) {
    x = most(6, x);
    x = some(3, x);
    return little(1, x) + 1;
}

// And calls of a library, signals that are blocked, and a deep recursion: as long as each other.
__attribute__((noinline)) static void copy(double seconds) {
    static char from[1 << 20], to[1 << 20];
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 10; i++) {
            memcpy(to, from, sizeof from);
            __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
        }
}
__attribute__((noinline)) static void block(double seconds) {
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
        sigset_t all, before;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &before);
        most(160, 1);
        sigprocmask(SIG_SETMASK, &before, nullptr);
    }
}
__attribute__((noinline)) static unsigned down(int depth, double seconds) {
    return depth == 0 ? work(seconds) : down(depth - 1, seconds) + 1;
}
static void shares(double seconds) {
    unsigned long x = 1;
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
        for (int i = 0; i < 10; i++) x = step(x);
        MPI_Barrier(MPI_COMM_SELF);
    }
    copy(seconds / 4);
    MPI_Barrier(MPI_COMM_SELF);
    block(seconds / 4);
    MPI_Barrier(MPI_COMM_SELF);
    down(1000, seconds / 4);
    printf("%lu\n", x % 2);
}

// Page faults in one function, none in the other.
__attribute__((noinline)) static void fill() {
    const size_t length = 8 << 20;
    char *memory = static_cast<char *>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory, length, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < length; at += 4096) memory[at] = 1;
    munmap(memory, length);
}
static void faults(double seconds) {
    for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
        fill();
        work(0.005);
    }
}

int main(int count, char **words) {
    const char *part = count > 1 ? words[1] : "";
    double seconds = count > 2 ? atof(words[2]) / 1000 : 0.3;
    int threads_allowed;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &threads_allowed);
    if (!strcmp(part, "shares")) shares(seconds);
    if (!strcmp(part, "faults")) faults(seconds);
    if (!strcmp(part, "frames")) down(9, seconds);
    if (!strcmp(part, "sleeps")) sleeps(seconds);
    if (!strcmp(part, "children")) children(seconds);
    if (!strcmp(part, "exceptions")) exceptions(seconds);
    if (!strcmp(part, "threads")) threads(seconds);
    if (!strcmp(part, "stacks")) stacks(seconds);
    if (!strcmp(part, "takes")) takes(seconds);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
