/* Programs that end or behave in unusual ways: ./faults WAY. Rank 0 does it; the other ranks wait for it or end. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static char own[64], others[64];
static clockid_t clock_of_main;
static double begin;

/* Seconds of the processor that this thread took. */
static double computed(void)
{
    struct timespec time;
    clock_gettime(clock_of_main, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Having computed for long enough, this rank is in the call where it is stuck. When the other one says the same, both may be killed. */
static void stuck(int number)
{
    if (computed() - begin < 0.002)
        return;
    close(open(own, O_CREAT, 0600));
    if (!access(others, F_OK)) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Kills this rank once both have waited in vain. It goes by the processor's time, as on a busy machine any other may be too short; on
   such a machine, waiting takes little of it. */
static void die_stuck(void)
{
    struct itimerval every = {{0, 20000}, {0, 20000}};
    /* Both ranks are children of the launcher. */
    snprintf(own, sizeof own, "stuck.%d.%d", (int)getppid(), rank);
    snprintf(others, sizeof others, "stuck.%d.%d", (int)getppid(), 1 - rank);
    pthread_getcpuclockid(pthread_self(), &clock_of_main);
    begin = computed();
    signal(SIGALRM, stuck);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* Rank 0 goes on when rank 1 has ended: launchers may kill those that are left once one has failed. */
static void end_last(void)
{
    char name[64];
    snprintf(name, sizeof name, "ended.%d", (int)getppid());
    /* A process that ends leaves its lock. */
    int file = open(name, O_CREAT | O_RDWR, 0600);
    if (rank == 1)
        lockf(file, F_LOCK, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 1)
        exit(0);
    lockf(file, F_LOCK, 0);
    exit(42);
}

static void exchange(MPI_Comm comm, int steps)
{
    char out[100] = {0}, in[100];
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    for (int step = 0; step < steps; step++)
        MPI_Sendrecv(out, sizeof out, MPI_CHAR, (me + 1) % all, 1, in, sizeof in, MPI_CHAR, (me + all - 1) % all, 1, comm,
                     MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int flag, version, subversion;
    if (!strcmp(way, "early")) {
        MPI_Initialized(&flag);
        MPI_Get_version(&version, &subversion);
        if (flag || version < 3)
            return 9;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* So many calls would take minutes if ranks that share a core waited for each other in each. */
    if (!strcmp(way, "many"))
        exchange(MPI_COMM_SELF, atoi(argv[2]));
    else
        exchange(MPI_COMM_WORLD, 10);
    if (!strcmp(way, "abort") && rank == 0) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (!strcmp(way, "exit")) {
        exit(5);
    } else if (!strcmp(way, "kill") && rank == 0) {
        kill(getpid(), SIGKILL);
    } else if (!strcmp(way, "segv") && rank == 0) {
        kill(getpid(), SIGSEGV);
    } else if (!strcmp(way, "stuck")) {
        /* Each waits for a message that nobody sends. */
        die_stuck();
        MPI_Recv(&flag, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strncmp(way, "stuck in ", 9)) {
        /* The same with requests, and with a collective operation that rank 1 does not reach. */
        const char *where = way + 9;
        int in[2], out = 0, index, other = (rank + 1) % size;
        MPI_Request requests[2];
        die_stuck();
        if (!strcmp(where, "allreduce")) {
            if (rank == 0)
                MPI_Allreduce(&out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            else
                MPI_Recv(in, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (!strcmp(where, "mprobe")) {
            MPI_Message message;
            MPI_Mprobe(other, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        }
        if (!strcmp(where, "ssend"))
            MPI_Ssend(&out, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
        if (!strcmp(where, "sendrecv"))
            MPI_Sendrecv(&out, 1, MPI_INT, other, 7, in, 1, MPI_INT, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&in[0], 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[0]);
        if (!strcmp(where, "wait"))
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        if (!strcmp(where, "waitall")) {
            MPI_Isend(&out, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Irecv(&in[1], 1, MPI_INT, other, 9, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    } else if (!strcmp(way, "errors")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (MPI_Send(&flag, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD) == MPI_SUCCESS)
            return 9;
    } else if (!strcmp(way, "code")) {
        end_last();
    } else if (!strcmp(way, "fork")) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        exchange(MPI_COMM_WORLD, 1);
    } else if (!strcmp(way, "pcontrol")) {
        MPI_Pcontrol(0);
        exchange(MPI_COMM_WORLD, 5);
        MPI_Pcontrol(1);
        exchange(MPI_COMM_WORLD, 1);
    } else if (!strcmp(way, "forever")) {
        for (;;)
            exchange(MPI_COMM_WORLD, 1);
    }
    if ((!strcmp(way, "abort") || !strcmp(way, "kill") || !strcmp(way, "segv")) && rank != 0)
        MPI_Recv(&flag, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    if (!strcmp(way, "early"))
        MPI_Finalized(&flag);
    return 0;
}
