/* Processes with an MPI_COMM_WORLD each that reach each other: started (spawn), by a port (accept, connect), or by a socket (join). Rank 0 of the
   first world waits for a message of the second, which computes for U before; then all meet. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define U 0.3

static void compute(double seconds)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < seconds) { }
}

/* In a second world, U comes before the message, and before the barrier in the last of all ranks. */
static void meet(MPI_Comm others, int second)
{
    MPI_Comm all, half, copy;
    MPI_Request request;
    int rank, size, x = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && second) {
        compute(U);
        x = 42;
        MPI_Send(&x, 1, MPI_INT, 0, 1, others);
    } else if (rank == 0) {
        MPI_Irecv(&x, 1, MPI_INT, 0, 1, others, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Intercomm_merge(others, second, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Comm_dup(all, &copy);
    if (rank == size - 1) compute(U);
    MPI_Barrier(copy);
    /* Each half has processes of both worlds, if there are enough. */
    MPI_Comm_split(copy, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    if (rank == 0) printf("%d ranks, %d, %d\n", size, x, sum);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
}

static int connected(const char *path, int listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (listens) {
        bind(file, (struct sockaddr *)&address, sizeof address);
        listen(file, 1);
        return accept(file, NULL, NULL);
    }
    while (connect(file, (struct sockaddr *)&address, sizeof address)) usleep(1000);
    return file;
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm others = MPI_COMM_NULL;
    const char *how = argv[1];
    int rank, second = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&others);
    if (others != MPI_COMM_NULL) {
        second = 1;
    } else if (!strcmp(how, "spawn")) {
        MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    } else if (!strcmp(how, "unrecorded")) {
        /* The recorder is not loaded into the others. */
        char *words[] = {"-u", "LD_PRELOAD", argv[0], "spawn", NULL};
        MPI_Comm_spawn("env", words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    } else if (!strcmp(how, "accept")) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            FILE *file = fopen("port.new", "w");
            fputs(port, file);
            fclose(file);
            rename("port.new", "port");
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    } else if (!strcmp(how, "connect")) {
        FILE *file;
        second = 1;
        while (rank == 0 && !(file = fopen("port", "r"))) usleep(1000);
        if (rank == 0 && !fgets(port, sizeof port, file)) return 1;
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others);
    } else {
        second = !strcmp(how, "join");
        MPI_Comm_join(connected("socket", !second), &others);
    }
    meet(others, second);
    MPI_Finalize();
    return 0;
}
