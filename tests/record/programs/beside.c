/* What calls of MPI leave alone: errno, the memory of the process, and what its children find. Two ranks. */
#include <errno.h>
#include <locale.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fact(const char *aspect, const char *format, ...);
void observe(const char *when);

static volatile sig_atomic_t caught;
static void handler(int number) { caught += number; }

static int mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) count++;
    if (maps) fclose(maps);
    return count;
}

/* Makes a call and tells whether errno is as before; the first calls of a kind may set up what later ones use. */
#define CALL(call) do { \
    call; \
    errno = 77; \
    call; \
    fact("errno", "%s %d", #call, errno); \
} while (0)

/* How often MPI calls the error handler. */
static int errors;
static void count(MPI_Comm *comm, int *code, ...) { (void)comm; (void)code; errors++; }

/* Makes a call with a wrong argument. */
#define WRONG(call) do { \
    int class = 0; \
    errors = 0; \
    MPI_Error_class(call, &class); \
    fact("results", "%s: %d, %d errors", #call, class, errors); \
} while (0)

static void wrong_calls(int size, int other)
{
    int x = 1, y[4];
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Errhandler handler;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Comm_create_errhandler(count, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &status);
    WRONG(MPI_Send(&x, 1, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD));
    WRONG(MPI_Send(&x, -1, MPI_INT, other, 1, MPI_COMM_WORLD));
    WRONG(MPI_Send(&x, 1, MPI_INT, other, -5, MPI_COMM_WORLD));
    WRONG(MPI_Send(&x, 1, MPI_INT, other, 1, MPI_COMM_NULL));
    WRONG(MPI_Irecv(&x, 1, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD, &request));
    WRONG(MPI_Irecv(&x, 1, MPI_INT, size, 1, MPI_COMM_WORLD, &request));
    WRONG(MPI_Sendrecv(&x, 1, MPI_INT, other, 1, y, 1, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD, &status));
    WRONG(MPI_Iprobe(size + 1, 1, MPI_COMM_WORLD, y, MPI_STATUS_IGNORE));
    WRONG(MPI_Send_init(&x, 1, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD, &request));
    WRONG(MPI_Bcast(&x, 1, MPI_INT, size + 3, MPI_COMM_WORLD));
    WRONG(MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    WRONG(MPI_Allreduce(&x, y, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    WRONG(MPI_Gather(&x, 1, MPI_DATATYPE_NULL, y, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    WRONG(MPI_Ibarrier(MPI_COMM_NULL, &request));
    WRONG(MPI_Comm_dup(MPI_COMM_NULL, &comm));
    WRONG(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm));
    WRONG(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){1000}, (int[]){0}, 0, &comm));
    WRONG(MPI_Get_count(&status, MPI_DATATYPE_NULL, y));
    WRONG(MPI_Type_contiguous(2, MPI_DATATYPE_NULL, &type));
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    int rank, size, other, in = 0, out, flag, count;
    double values[4] = {1, 2, 3, 4}, sums[4];
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Status status;
    MPI_Win window;
    MPI_File file;
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGUSR1, handler);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = 1 - rank;
    out = rank + 5;
    observe("begun");

    CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CALL(MPI_Wtime());
    CALL(MPI_Sendrecv(&out, 1, MPI_INT, other, 1, &in, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &status));
    CALL(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_SELF, &request);
         MPI_Send(&out, 1, MPI_INT, 0, 2, MPI_COMM_SELF); MPI_Wait(&request, &status));
    CALL(MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    CALL(MPI_Allreduce(values, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm); MPI_Comm_free(&comm));
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm); MPI_Comm_free(&comm));
    CALL(MPI_Type_contiguous(3, MPI_INT, &type); MPI_Type_commit(&type); MPI_Type_free(&type));
    CALL(MPI_Win_create(values, sizeof values, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window); MPI_Win_free(&window));
    CALL(MPI_File_open(MPI_COMM_SELF, rank ? "file.1" : "file.0", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
         MPI_File_write(file, &out, 1, MPI_INT, &status); MPI_File_close(&file));

    MPI_Get_count(&status, MPI_INT, &count);
    printf("rank %d: %d, %g, %d\n", rank, in, sums[3], count);

    /* The mappings of many calls are those of few. The recorder has some of its own, for what it writes of calls and samples, and more of
       them at one moment than at another. */
    int before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 300) before = mappings();
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_free(&comm);
    }
    fact("memory", "grows %d", mappings() > before + 8);

    /* A buffer that MPI does not touch, an error that is returned, and a signal. */
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, class = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Send(&out, 1, MPI_INT, size + 7, 1, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
    fact("results", "%d %s", class == MPI_ERR_RANK, text);
    wrong_calls(size, other);
    raise(SIGUSR1);
    fact("signals", "caught %d", (int)caught);
    /* A child that is no program of MPI, and one that is forked only. */
    fact("children", "system %d", system("exit 3") >> 8);
    observe("ending");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
