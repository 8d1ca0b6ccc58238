/*
 * A small measurement library: logs what Score-P would write into an OTF2 trace for each MPI call and each function
 * compiled with -finstrument-functions. Link it into a program; each rank leaves rank.<r>.log, and to_otf2.py makes
 * an archive of them. Which record a call writes, and before or after the time spent in MPI, follows Score-P 7.1.
 *
 * A log line is `Record time arguments`, named and ordered as in the OTF2 library's event writer, with ids local to
 * the rank; lines that begin with `#` define those ids. Time counts nanoseconds since the process's own start, so that
 * clocks of ranks differ as those of machines do; `# clock` tells by how much.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "known.h"

#define UNDEFINED UINT32_MAX
#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- the log ---------------------------------------------------------------------------------------------------- */

static char text[64 << 20];
static size_t used;
static int64_t epoch, last;
static int world_rank, world_size;

static void fail(const char *what)
{
    fprintf(stderr, "recorder: %s\n", what);
    abort();
}

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void append(const char *format, va_list arguments)
{
    int n = vsnprintf(text + used, sizeof text - used, format, arguments);
    if (n < 0 || used + n >= sizeof text)
        fail("log is full");
    used += n;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(format, arguments);
    va_end(arguments);
}

/* A record with the time stamp of the one before it. */
static void emit_again(const char *record, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put("%s %lld ", record, (long long)last);
    append(format, arguments);
    put("\n");
    va_end(arguments);
}

/* A record of now. */
#define emit(...) (last = clock_ns() - epoch, emit_again(__VA_ARGS__))

void expect(const char *metrics, const char *callpath, double milliseconds, int cause)
{
    put("# expect %s %s %.17g %d\n", metrics, callpath, milliseconds, cause);
}

static int new_region(const char *name)
{
    static int count;
    put("# region %d %s\n", count, name);
    return count++;
}

__attribute__((constructor)) static void start(void)
{
    epoch = clock_ns();
    put("# clock %lld\n", (long long)epoch);
    emit("ProgramBegin", "%s %d", program_invocation_short_name, (int)getpid());
}

__attribute__((destructor)) static void stop(void)
{
    char path[4096];
    emit("ProgramEnd", "0");
    snprintf(path, sizeof path, "%s/rank.%d.log", getenv("RECORDER_DIR") ? getenv("RECORDER_DIR") : ".", world_rank);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, used, file) != used || fclose(file))
        fail("cannot write the log");
}

/* ---- functions of the program ----------------------------------------------------------------------------------- */

static int function_region(void *function)
{
    static struct { void *function; int region; } known[64];
    for (int i = 0; i < LENGTH(known); i++) {
        if (!known[i].function) {
            char address[32];
            snprintf(address, sizeof address, "@%p", function);
            known[i].function = function;
            known[i].region = new_region(address);
        }
        if (known[i].function == function)
            return known[i].region;
    }
    fail("too many functions");
    return 0;
}

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    int region = function_region(function);
    emit("Enter", "%d", region);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)site;
    emit("Leave", "%d", function_region(function));
}

/* ---- communicators and groups ----------------------------------------------------------------------------------- */

static struct { MPI_Comm handle; int id; } comms[64];
static int comm_count, group_count;

static int comm_id(MPI_Comm comm)
{
    for (int i = 0; i < LENGTH(comms); i++)
        if (comms[i].handle == comm && comms[i].id >= 0)
            return comms[i].id;
    fail("unknown communicator");
    return 0;
}

static void put_members(MPI_Group group)
{
    MPI_Group world;
    int size;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    for (int i = 0; i < size; i++) {
        int member;
        PMPI_Group_translate_ranks(group, 1, &i, world, &member);
        put(" %d", member);
    }
    PMPI_Group_free(&world);
}

/* Ranks that get no communicator log the call as well: the converter counts them to see which ones are the same. */
static void new_comm(MPI_Comm comm, MPI_Comm parent)
{
    int inter = 0;
    MPI_Group group;
    if (comm == MPI_COMM_NULL) {
        put("# nocomm %d\n", comm_id(parent));
        return;
    }
    int slot = 0;
    while (slot < comm_count && comms[slot].id >= 0)
        slot++;
    if (slot == LENGTH(comms))
        fail("too many communicators");
    PMPI_Comm_test_inter(comm, &inter);
    put("# %s %d %d", inter ? "intercomm" : "comm", comm_count, parent == MPI_COMM_NULL ? -1 : comm_id(parent));
    PMPI_Comm_group(comm, &group);
    put_members(group);
    PMPI_Group_free(&group);
    if (inter) {
        put(" |");
        PMPI_Comm_remote_group(comm, &group);
        put_members(group);
        PMPI_Group_free(&group);
    }
    put("\n");
    comms[slot].handle = comm;
    comms[slot].id = comm_count++;
}

static void forget_comm(MPI_Comm comm)
{
    for (int i = 0; i < LENGTH(comms); i++)
        if (comms[i].handle == comm)
            comms[i].id = -1;
}

static int new_group(MPI_Group group)
{
    put("# group %d", group_count);
    put_members(group);
    put("\n");
    return group_count++;
}

static int64_t bytes(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (int64_t)count * size;
}

/* Every wrapper opens with ENTER and closes with DONE, which returns the result of the call. */
#define ENTER(name)                                                                                                    \
    static int region = -1;                                                                                            \
    if (region < 0)                                                                                                    \
        region = new_region(name);                                                                                     \
    emit("Enter", "%d", region)
#define DONE(result)                                                                                                   \
    emit("Leave", "%d", region);                                                                                       \
    return result

/* Calls of which a trace has nothing but the time they took. */
#define ONLY_TIMED(name, parameters, arguments)                                                                        \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        int result = PMPI_##name arguments;                                                                            \
        DONE(result);                                                                                                  \
    }

int MPI_Init(int *argc, char ***argv)
{
    ENTER("MPI_Init");
    int result = PMPI_Init(argc, argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    new_comm(MPI_COMM_WORLD, MPI_COMM_NULL);
    new_comm(MPI_COMM_SELF, MPI_COMM_NULL);
    DONE(result);
}

ONLY_TIMED(Finalize, (void), ())
ONLY_TIMED(Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
ONLY_TIMED(Comm_size, (MPI_Comm comm, int *size), (comm, size))
ONLY_TIMED(Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group))
ONLY_TIMED(Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group *out), (group, n, ranks, out))
ONLY_TIMED(Group_free, (MPI_Group *group), (group))

#define NEW_COMM(name, parameters, arguments, parent)                                                                  \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        int result = PMPI_##name arguments;                                                                            \
        new_comm(*out, parent);                                                                                        \
        DONE(result);                                                                                                  \
    }

NEW_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm *out), (comm, out), comm)
NEW_COMM(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *out), (comm, color, key, out), comm)
NEW_COMM(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *out), (comm, group, out), comm)
NEW_COMM(Cart_create, (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *out),
         (comm, n, dims, periods, reorder, out), comm)
NEW_COMM(Intercomm_create,
         (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag, MPI_Comm *out),
         (local, local_leader, peer, remote_leader, tag, out), peer)

int MPI_Comm_free(MPI_Comm *comm)
{
    ENTER("MPI_Comm_free");
    forget_comm(*comm);
    int result = PMPI_Comm_free(comm);
    DONE(result);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

enum kind { UNUSED, SILENT, SEND, RECEIVE, ONE_SIDED };

struct operation {
    struct window *window;
    int target;
    int64_t matching;
    int is_get, local, pending;
};

static struct request {
    MPI_Request handle;
    enum kind kind;
    int64_t id;
    int persistent, active;
    MPI_Comm comm;
    int peer, tag;
    int64_t length;
    struct operation *operation;
} requests[1024];
static int request_count;
static int64_t request_ids;

static struct request *new_request(MPI_Request handle, enum kind kind)
{
    int slot = 0;
    while (slot < request_count && requests[slot].kind != UNUSED)
        slot++;
    if (slot == LENGTH(requests))
        fail("too many requests");
    if (slot == request_count)
        request_count++;
    requests[slot] = (struct request){.handle = handle, .kind = kind, .id = kind == SILENT ? 0 : ++request_ids};
    return &requests[slot];
}

/* Requests that MPI completes at once may share one handle; then the oldest is meant. */
static struct request *find_request(MPI_Request handle)
{
    struct request *found = NULL;
    for (int i = 0; handle != MPI_REQUEST_NULL && i < request_count; i++)
        if (requests[i].kind != UNUSED && requests[i].handle == handle && (!found || requests[i].id < found->id))
            found = &requests[i];
    return found;
}

static void emit_send(const char *record, struct request *r)
{
    if (r->peer != MPI_PROC_NULL)
        emit(record, "%d %d %d %lld %lld", r->peer, comm_id(r->comm), r->tag, (long long)r->length, (long long)r->id);
}

static void emit_receive(const char *record, MPI_Comm comm, MPI_Status *status, const char *tail)
{
    int length;
    if (status->MPI_SOURCE == MPI_PROC_NULL)
        return;
    PMPI_Get_count(status, MPI_BYTE, &length);
    emit(record, "%d %d %d %d%s", status->MPI_SOURCE, comm_id(comm), status->MPI_TAG, length, tail);
}

static void complete_local(struct operation *o);
static void complete_remote(struct operation *o);

static void completed(MPI_Request handle, MPI_Status *status)
{
    struct request *r = find_request(handle);
    int cancelled = 0;
    if (!r || (r->persistent && !r->active))
        return;
    PMPI_Test_cancelled(status, &cancelled);
    if (r->kind == ONE_SIDED) {
        complete_local(r->operation);
        if (r->operation->is_get)
            complete_remote(r->operation);
    } else if (r->kind != SILENT && r->peer != MPI_PROC_NULL) {
        if (cancelled) {
            emit("MpiRequestCancelled", "%lld", (long long)r->id);
        } else if (r->kind == SEND) {
            emit("MpiIsendComplete", "%lld", (long long)r->id);
        } else {
            char id[32];
            snprintf(id, sizeof id, " %lld", (long long)r->id);
            emit_receive("MpiIrecv", r->comm, status, id);
        }
    }
    r->active = 0;
    if (!r->persistent)
        r->kind = UNUSED;
}

/* ---- point to point --------------------------------------------------------------------------------------------- */

#define SEND_CALL(name)                                                                                                \
    int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)                 \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        if (peer != MPI_PROC_NULL)                                                                                     \
            emit("MpiSend", "%d %d %d %lld", peer, comm_id(comm), tag, (long long)bytes(count, type));                 \
        int result = PMPI_##name(buffer, count, type, peer, tag, comm);                                                \
        DONE(result);                                                                                                  \
    }
SEND_CALL(Send)
SEND_CALL(Ssend)
SEND_CALL(Bsend)
SEND_CALL(Rsend)

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    ENTER("MPI_Recv");
    int result = PMPI_Recv(buffer, count, type, peer, tag, comm, &own);
    emit_receive("MpiRecv", comm, &own, "");
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    DONE(result);
}

/* The record of a non-blocking send stands before the call, as that of a blocking one: the message may arrive first. */
#define ISEND_CALL(name)                                                                                               \
    int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,                 \
                   MPI_Request *request)                                                                               \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        struct request *r = new_request(MPI_REQUEST_NULL, peer == MPI_PROC_NULL ? SILENT : SEND);                      \
        r->comm = comm, r->peer = peer, r->tag = tag, r->length = bytes(count, type);                                  \
        emit_send("MpiIsend", r);                                                                                      \
        int result = PMPI_##name(buffer, count, type, peer, tag, comm, request);                                       \
        r->handle = *request;                                                                                          \
        DONE(result);                                                                                                  \
    }
ISEND_CALL(Isend)
ISEND_CALL(Issend)
ISEND_CALL(Ibsend)
ISEND_CALL(Irsend)

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    ENTER("MPI_Irecv");
    int result = PMPI_Irecv(buffer, count, type, peer, tag, comm, request);
    struct request *r = new_request(*request, peer == MPI_PROC_NULL ? SILENT : RECEIVE);
    r->comm = comm, r->peer = peer;
    if (r->kind == RECEIVE)
        emit("MpiIrecvRequest", "%lld", (long long)r->id);
    DONE(result);
}

#define PERSISTENT_CALL(name, constness, direction)                                                                    \
    int MPI_##name(constness void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,             \
                   MPI_Request *request)                                                                               \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        int result = PMPI_##name(buffer, count, type, peer, tag, comm, request);                                       \
        struct request *r = new_request(*request, direction);                                                          \
        r->comm = comm, r->peer = peer, r->tag = tag, r->length = bytes(count, type), r->persistent = 1;               \
        DONE(result);                                                                                                  \
    }
PERSISTENT_CALL(Send_init, const, SEND)
PERSISTENT_CALL(Ssend_init, const, SEND)
PERSISTENT_CALL(Recv_init, , RECEIVE)

int MPI_Start(MPI_Request *request)
{
    ENTER("MPI_Start");
    struct request *r = find_request(*request);
    if (!r)
        fail("MPI_Start of an unknown request");
    r->active = 1;
    if (r->kind == SEND)
        emit_send("MpiIsend", r);
    int result = PMPI_Start(request);
    if (r->kind == RECEIVE && r->peer != MPI_PROC_NULL)
        emit("MpiIrecvRequest", "%lld", (long long)r->id);
    DONE(result);
}

int MPI_Startall(int count, MPI_Request array[])
{
    ENTER("MPI_Startall");
    for (int i = 0; i < count; i++) {
        struct request *r = find_request(array[i]);
        if (!r)
            fail("MPI_Startall of an unknown request");
        r->active = 1;
        if (r->kind == SEND)
            emit_send("MpiIsend", r);
    }
    int result = PMPI_Startall(count, array);
    for (int i = 0; i < count; i++) {
        struct request *r = find_request(array[i]);
        if (r->kind == RECEIVE && r->peer != MPI_PROC_NULL)
            emit("MpiIrecvRequest", "%lld", (long long)r->id);
    }
    DONE(result);
}

int MPI_Request_free(MPI_Request *request)
{
    ENTER("MPI_Request_free");
    struct request *r = find_request(*request);
    if (r)
        r->kind = UNUSED;
    int result = PMPI_Request_free(request);
    DONE(result);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Request before = *request;
    MPI_Status own;
    ENTER("MPI_Wait");
    int result = PMPI_Wait(request, &own);
    completed(before, &own);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    DONE(result);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Request before = *request;
    MPI_Status own;
    ENTER("MPI_Test");
    int result = PMPI_Test(request, flag, &own);
    struct request *r = find_request(before);
    if (*flag)
        completed(before, &own);
    else if (r && r->kind != SILENT)
        emit("MpiRequestTest", "%lld", (long long)r->id);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    DONE(result);
}

/* Keeps the handles of an array call, which the call itself sets to null, and its statuses. */
static MPI_Request before[LENGTH(requests)];
static MPI_Status statuses[LENGTH(requests)];

static void keep(int count, MPI_Request array[])
{
    if (count > LENGTH(before))
        fail("too many requests in one call");
    memcpy(before, array, count * sizeof *array);
}

int MPI_Waitall(int count, MPI_Request array[], MPI_Status *out)
{
    ENTER("MPI_Waitall");
    keep(count, array);
    int result = PMPI_Waitall(count, array, statuses);
    for (int i = 0; i < count; i++)
        completed(before[i], &statuses[i]);
    if (out != MPI_STATUSES_IGNORE)
        memcpy(out, statuses, count * sizeof *out);
    DONE(result);
}

int MPI_Testall(int count, MPI_Request array[], int *flag, MPI_Status *out)
{
    ENTER("MPI_Testall");
    keep(count, array);
    int result = PMPI_Testall(count, array, flag, statuses);
    for (int i = 0; *flag && i < count; i++)
        completed(before[i], &statuses[i]);
    if (*flag && out != MPI_STATUSES_IGNORE)
        memcpy(out, statuses, count * sizeof *out);
    DONE(result);
}

int MPI_Waitany(int count, MPI_Request array[], int *index, MPI_Status *status)
{
    ENTER("MPI_Waitany");
    keep(count, array);
    int result = PMPI_Waitany(count, array, index, statuses);
    if (*index != MPI_UNDEFINED)
        completed(before[*index], statuses);
    if (status != MPI_STATUS_IGNORE)
        *status = statuses[0];
    DONE(result);
}

int MPI_Waitsome(int count, MPI_Request array[], int *done, int indices[], MPI_Status *out)
{
    ENTER("MPI_Waitsome");
    keep(count, array);
    int result = PMPI_Waitsome(count, array, done, indices, statuses);
    for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++)
        completed(before[indices[i]], &statuses[i]);
    if (*done != MPI_UNDEFINED && out != MPI_STATUSES_IGNORE)
        memcpy(out, statuses, *done * sizeof *out);
    DONE(result);
}

int MPI_Testany(int count, MPI_Request array[], int *index, int *flag, MPI_Status *status)
{
    ENTER("MPI_Testany");
    keep(count, array);
    int result = PMPI_Testany(count, array, index, flag, statuses);
    if (*flag && *index != MPI_UNDEFINED)
        completed(before[*index], statuses);
    if (status != MPI_STATUS_IGNORE)
        *status = statuses[0];
    DONE(result);
}

int MPI_Testsome(int count, MPI_Request array[], int *done, int indices[], MPI_Status *out)
{
    ENTER("MPI_Testsome");
    keep(count, array);
    int result = PMPI_Testsome(count, array, done, indices, statuses);
    for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++)
        completed(before[indices[i]], &statuses[i]);
    if (*done != MPI_UNDEFINED && out != MPI_STATUSES_IGNORE)
        memcpy(out, statuses, *done * sizeof *out);
    DONE(result);
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    ENTER("MPI_Sendrecv");
    if (to != MPI_PROC_NULL)
        emit("MpiSend", "%d %d %d %lld", to, comm_id(comm), out_tag, (long long)bytes(out_count, out_type));
    int result = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, &own);
    emit_receive("MpiRecv", comm, &own, "");
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    DONE(result);
}

int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    ENTER("MPI_Sendrecv_replace");
    if (to != MPI_PROC_NULL)
        emit("MpiSend", "%d %d %d %lld", to, comm_id(comm), out_tag, (long long)bytes(count, type));
    int result = PMPI_Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, &own);
    emit_receive("MpiRecv", comm, &own, "");
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    DONE(result);
}

ONLY_TIMED(Cancel, (MPI_Request *request), (request))
ONLY_TIMED(Probe, (int peer, int tag, MPI_Comm comm, MPI_Status *status), (peer, tag, comm, status))
ONLY_TIMED(Iprobe, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (peer, tag, comm, flag, status))
ONLY_TIMED(Buffer_attach, (void *buffer, int size), (buffer, size))
ONLY_TIMED(Buffer_detach, (void *buffer, int *size), (buffer, size))

/* ---- collectives ------------------------------------------------------------------------------------------------ */

/* `sent` and `received` may use n (ranks), me, and root; Score-P counts a rank's copy to itself. */
#define COLLECTIVE(name, operation, parameters, arguments, root_rank, sent, received)                                  \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        int me, n;                                                                                                     \
        PMPI_Comm_rank(comm, &me);                                                                                     \
        PMPI_Comm_size(comm, &n);                                                                                      \
        ENTER("MPI_" #name);                                                                                           \
        emit_again("MpiCollectiveBegin", "");                                                                          \
        int result = PMPI_##name arguments;                                                                            \
        emit("MpiCollectiveEnd", "%s %d %u %lld %lld", operation, comm_id(comm), (unsigned)(root_rank),                \
             (long long)(sent), (long long)(received));                                                                \
        DONE(result);                                                                                                  \
    }

static int64_t sum(const int counts[], int n, MPI_Datatype type)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++)
        total += bytes(counts[i], type);
    return total;
}

COLLECTIVE(Barrier, "BARRIER", (MPI_Comm comm), (comm), UNDEFINED, 0, 0)
COLLECTIVE(Bcast, "BCAST", (void *b, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (b, count, type, root, comm), root, me == root ? n * bytes(count, type) : 0, bytes(count, type))
COLLECTIVE(Scatter, "SCATTER",
           (const void *s, int sc, MPI_Datatype st, void *r, int rc, MPI_Datatype rt, int root, MPI_Comm comm),
           (s, sc, st, r, rc, rt, root, comm), root, me == root ? n * bytes(sc, st) : 0, bytes(rc, rt))
COLLECTIVE(Scatterv, "SCATTERV",
           (const void *s, const int sc[], const int sd[], MPI_Datatype st, void *r, int rc, MPI_Datatype rt, int root,
            MPI_Comm comm),
           (s, sc, sd, st, r, rc, rt, root, comm), root, me == root ? sum(sc, n, st) : 0, bytes(rc, rt))
COLLECTIVE(Gather, "GATHER",
           (const void *s, int sc, MPI_Datatype st, void *r, int rc, MPI_Datatype rt, int root, MPI_Comm comm),
           (s, sc, st, r, rc, rt, root, comm), root, bytes(sc, st), me == root ? n * bytes(rc, rt) : 0)
COLLECTIVE(Gatherv, "GATHERV",
           (const void *s, int sc, MPI_Datatype st, void *r, const int rc[], const int rd[], MPI_Datatype rt, int root,
            MPI_Comm comm),
           (s, sc, st, r, rc, rd, rt, root, comm), root, bytes(sc, st), me == root ? sum(rc, n, rt) : 0)
COLLECTIVE(Reduce, "REDUCE",
           (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (s, r, count, type, op, root, comm), root, bytes(count, type), me == root ? n * bytes(count, type) : 0)
COLLECTIVE(Allreduce, "ALLREDUCE", (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (s, r, count, type, op, comm), UNDEFINED, n * bytes(count, type), n * bytes(count, type))
COLLECTIVE(Allgather, "ALLGATHER",
           (const void *s, int sc, MPI_Datatype st, void *r, int rc, MPI_Datatype rt, MPI_Comm comm),
           (s, sc, st, r, rc, rt, comm), UNDEFINED, n * bytes(sc, st), n * bytes(rc, rt))
COLLECTIVE(Alltoall, "ALLTOALL",
           (const void *s, int sc, MPI_Datatype st, void *r, int rc, MPI_Datatype rt, MPI_Comm comm),
           (s, sc, st, r, rc, rt, comm), UNDEFINED, n * bytes(sc, st), n * bytes(rc, rt))
COLLECTIVE(Alltoallv, "ALLTOALLV",
           (const void *s, const int sc[], const int sd[], MPI_Datatype st, void *r, const int rc[], const int rd[],
            MPI_Datatype rt, MPI_Comm comm),
           (s, sc, sd, st, r, rc, rd, rt, comm), UNDEFINED, sum(sc, n, st), sum(rc, n, rt))
COLLECTIVE(Reduce_scatter_block, "REDUCE_SCATTER_BLOCK",
           (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (s, r, count, type, op, comm), UNDEFINED, n * bytes(count, type), n * bytes(count, type))
COLLECTIVE(Scan, "SCAN", (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (s, r, count, type, op, comm), UNDEFINED, (n - me) * bytes(count, type), (me + 1) * bytes(count, type))
COLLECTIVE(Exscan, "EXSCAN", (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (s, r, count, type, op, comm), UNDEFINED, (n - me - 1) * bytes(count, type), me * bytes(count, type))

#define SILENT_COLLECTIVE(name, parameters, arguments)                                                                 \
    int MPI_##name parameters                                                                                          \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        int result = PMPI_##name arguments;                                                                            \
        new_request(*request, SILENT);                                                                                 \
        DONE(result);                                                                                                  \
    }
SILENT_COLLECTIVE(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
SILENT_COLLECTIVE(Iallreduce,
                  (const void *s, void *r, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),
                  (s, r, count, type, op, comm, request))

/* ---- windows ---------------------------------------------------------------------------------------------------- */

static struct window {
    MPI_Win handle;
    int id, used, allocated;
    int targets, origins; /* groups of the open access and exposure epoch */
} windows[32];
static int window_count;

static struct operation operations[1 << 16]; /* requests point into it, so it only grows */
static int operation_count;
static int64_t matchings;

static struct window *find_window(MPI_Win handle)
{
    for (int i = 0; i < LENGTH(windows); i++)
        if (windows[i].used && windows[i].handle == handle)
            return &windows[i];
    fail("unknown window");
    return NULL;
}

static void complete_local(struct operation *o)
{
    if (!o->local)
        emit("RmaOpCompleteNonBlocking", "%d %lld", o->window->id, (long long)o->matching);
    o->local = 1;
}

static void complete_remote(struct operation *o)
{
    emit("RmaOpCompleteRemote", "%d %lld", o->window->id, (long long)o->matching);
    o->pending = 0;
}

static int concerns(struct operation *o, struct window *w, int target)
{
    return o->pending && o->window == w && (target < 0 || o->target == target);
}

/* Unlock and flush complete every kind of operation at both ends. */
static void complete_passive(struct window *w, int target)
{
    for (int i = 0; i < operation_count; i++) {
        if (concerns(&operations[i], w, target)) {
            complete_local(&operations[i]);
            complete_remote(&operations[i]);
        }
    }
}

/* Fence and complete end all operations, but only of a get is it known at the origin: latest first, gets once more. */
static void complete_active(struct window *w)
{
    for (int i = operation_count; i-- > 0;)
        if (concerns(&operations[i], w, -1))
            complete_local(&operations[i]);
    for (int i = operation_count; i-- > 0;) {
        if (concerns(&operations[i], w, -1)) {
            if (operations[i].is_get)
                complete_remote(&operations[i]);
            operations[i].pending = 0;
        }
    }
}

static struct operation *new_operation(struct window *w, int target, int is_get)
{
    if (operation_count == LENGTH(operations))
        fail("too many one-sided operations");
    operations[operation_count] = (struct operation){w, target, ++matchings, is_get, 0, 1};
    return &operations[operation_count++];
}

static void window_collective(const char *operation, int level, struct window *w)
{
    emit("RmaCollectiveEnd", "%s %d %d %u 0 0", operation, level, w->id, UNDEFINED);
}

static void new_window(MPI_Win handle, MPI_Comm comm, int allocated)
{
    int slot = 0;
    while (slot < LENGTH(windows) && windows[slot].used)
        slot++;
    if (slot == LENGTH(windows))
        fail("too many windows");
    struct window *w = &windows[slot];
    *w = (struct window){.handle = handle, .id = window_count++, .used = 1, .allocated = allocated};
    put("# window %d %d %s\n", w->id, comm_id(comm), allocated ? "MPI_Win_allocate" : "MPI_Win_create");
    emit("RmaWinCreate", "%d", w->id);
    window_collective(allocated ? "CREATE_HANDLE_AND_ALLOCATE" : "CREATE_HANDLE", 1, w);
}

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    ENTER("MPI_Win_create");
    emit("RmaCollectiveBegin", "");
    int result = PMPI_Win_create(base, size, unit, info, comm, win);
    new_window(*win, comm, 0);
    DONE(result);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
    ENTER("MPI_Win_allocate");
    emit("RmaCollectiveBegin", "");
    int result = PMPI_Win_allocate(size, unit, info, comm, base, win);
    new_window(*win, comm, 1);
    DONE(result);
}

int MPI_Win_free(MPI_Win *win)
{
    struct window *w = find_window(*win);
    ENTER("MPI_Win_free");
    emit("RmaCollectiveBegin", "");
    int result = PMPI_Win_free(win);
    emit("RmaWinDestroy", "%d", w->id);
    window_collective(w->allocated ? "DESTROY_HANDLE_AND_DEALLOCATE" : "DESTROY_HANDLE", 1, w);
    w->used = 0;
    DONE(result);
}

int MPI_Win_fence(int assertion, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_fence");
    emit("RmaCollectiveBegin", "");
    int result = PMPI_Win_fence(assertion, win);
    complete_active(w);
    window_collective("BARRIER", 3, w);
    DONE(result);
}

static void group_sync(int level, struct window *w, int group)
{
    emit_again("RmaGroupSync", "%d %d %d", level, w->id, group);
}

int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_start");
    w->targets = new_group(group);
    group_sync(1, w, w->targets);
    int result = PMPI_Win_start(group, assertion, win);
    DONE(result);
}

int MPI_Win_complete(MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_complete");
    int result = PMPI_Win_complete(win);
    complete_active(w);
    group_sync(3, w, w->targets);
    DONE(result);
}

int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_post");
    w->origins = new_group(group);
    group_sync(1, w, w->origins);
    int result = PMPI_Win_post(group, assertion, win);
    DONE(result);
}

int MPI_Win_wait(MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_wait");
    group_sync(3, w, w->origins);
    int result = PMPI_Win_wait(win);
    DONE(result);
}

int MPI_Win_test(MPI_Win win, int *flag)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_test");
    int result = PMPI_Win_test(win, flag);
    group_sync(*flag ? 3 : 0, w, w->origins);
    DONE(result);
}

static void request_lock(struct window *w, unsigned target, int shared)
{
    emit_again("RmaRequestLock", "%d %u 0 %d", w->id, target, shared);
}

static void release_lock(struct window *w, unsigned target)
{
    emit_again("RmaReleaseLock", "%d %u 0", w->id, target);
}

int MPI_Win_lock(int type, int target, int assertion, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_lock");
    request_lock(w, target, type == MPI_LOCK_SHARED);
    int result = PMPI_Win_lock(type, target, assertion, win);
    DONE(result);
}

int MPI_Win_lock_all(int assertion, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_lock_all");
    request_lock(w, UNDEFINED, 1);
    int result = PMPI_Win_lock_all(assertion, win);
    DONE(result);
}

int MPI_Win_unlock(int target, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_unlock");
    int result = PMPI_Win_unlock(target, win);
    complete_passive(w, target);
    release_lock(w, target);
    DONE(result);
}

int MPI_Win_unlock_all(MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_unlock_all");
    int result = PMPI_Win_unlock_all(win);
    complete_passive(w, -1);
    release_lock(w, UNDEFINED);
    DONE(result);
}

int MPI_Win_flush(int target, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_flush");
    int result = PMPI_Win_flush(target, win);
    complete_passive(w, target);
    DONE(result);
}

int MPI_Win_flush_all(MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_flush_all");
    int result = PMPI_Win_flush_all(win);
    complete_passive(w, -1);
    DONE(result);
}

int MPI_Win_flush_local(int target, MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_flush_local");
    int result = PMPI_Win_flush_local(target, win);
    for (int i = 0; i < operation_count; i++)
        if (concerns(&operations[i], w, target))
            complete_local(&operations[i]);
    DONE(result);
}

int MPI_Win_flush_local_all(MPI_Win win)
{
    struct window *w = find_window(win);
    ENTER("MPI_Win_flush_local_all");
    int result = PMPI_Win_flush_local_all(win);
    for (int i = 0; i < operation_count; i++)
        if (concerns(&operations[i], w, -1))
            complete_local(&operations[i]);
    DONE(result);
}

ONLY_TIMED(Win_sync, (MPI_Win win), (win))
ONLY_TIMED(Win_get_group, (MPI_Win win, MPI_Group *group), (win, group))
ONLY_TIMED(Win_set_name, (MPI_Win win, const char *name), (win, name))

/* ---- one-sided operations --------------------------------------------------------------------------------------- */

#define TRANSFER_PARAMETERS(constness)                                                                                 \
    constness void *b, int count, MPI_Datatype type, int target, MPI_Aint at, int tc, MPI_Datatype tt
#define TRANSFER b, count, type, target, at, tc, tt

#define PUT_OR_GET(name, extra_parameter, extra_argument, record, constness, get, after)                               \
    int MPI_##name(TRANSFER_PARAMETERS(constness), MPI_Win win extra_parameter)                                        \
    {                                                                                                                  \
        ENTER("MPI_" #name);                                                                                           \
        struct operation *o = new_operation(find_window(win), target, get);                                            \
        emit(record, "%d %d %lld %lld", o->window->id, target, (long long)bytes(count, type), (long long)o->matching); \
        int result = PMPI_##name(TRANSFER, win extra_argument);                                                        \
        after;                                                                                                         \
        DONE(result);                                                                                                  \
    }
#define REQUEST_PARAMETER , MPI_Request *request
#define REQUEST_ARGUMENT , request
#define WITH_REQUEST new_request(*request, ONE_SIDED)->operation = o
PUT_OR_GET(Put, , , "RmaPut", const, 0, (void)0)
PUT_OR_GET(Get, , , "RmaGet", , 1, (void)0)
PUT_OR_GET(Rput, REQUEST_PARAMETER, REQUEST_ARGUMENT, "RmaPut", const, 0, WITH_REQUEST)
PUT_OR_GET(Rget, REQUEST_PARAMETER, REQUEST_ARGUMENT, "RmaGet", , 1, WITH_REQUEST)

/* An atomic's record counts elements, not bytes, and is stamped like the Enter. */
static struct operation *emit_atomic(MPI_Win win, int target, const char *type, int sent, int received)
{
    struct operation *o = new_operation(find_window(win), target, 0);
    emit_again("RmaAtomic", "%d %d %s %d %d %lld", o->window->id, target, type, sent, received, (long long)o->matching);
    return o;
}

int MPI_Accumulate(TRANSFER_PARAMETERS(const), MPI_Op op, MPI_Win win)
{
    ENTER("MPI_Accumulate");
    emit_atomic(win, target, "ACCUMULATE", count, 0);
    int result = PMPI_Accumulate(TRANSFER, op, win);
    DONE(result);
}

int MPI_Raccumulate(TRANSFER_PARAMETERS(const), MPI_Op op, MPI_Win win, MPI_Request *request)
{
    ENTER("MPI_Raccumulate");
    struct operation *o = emit_atomic(win, target, "ACCUMULATE", count, 0);
    int result = PMPI_Raccumulate(TRANSFER, op, win, request);
    WITH_REQUEST;
    DONE(result);
}

int MPI_Get_accumulate(const void *b, int count, MPI_Datatype type, void *r, int rc, MPI_Datatype rt, int target,
                       MPI_Aint at, int tc, MPI_Datatype tt, MPI_Op op, MPI_Win win)
{
    ENTER("MPI_Get_accumulate");
    emit_atomic(win, target, "FETCH_AND_ACCUMULATE", count, rc);
    int result = PMPI_Get_accumulate(b, count, type, r, rc, rt, target, at, tc, tt, op, win);
    DONE(result);
}

int MPI_Rget_accumulate(const void *b, int count, MPI_Datatype type, void *r, int rc, MPI_Datatype rt, int target,
                        MPI_Aint at, int tc, MPI_Datatype tt, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    ENTER("MPI_Rget_accumulate");
    struct operation *o = emit_atomic(win, target, "FETCH_AND_ACCUMULATE", count, rc);
    int result = PMPI_Rget_accumulate(b, count, type, r, rc, rt, target, at, tc, tt, op, win, request);
    WITH_REQUEST;
    DONE(result);
}

int MPI_Fetch_and_op(const void *b, void *r, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op, MPI_Win win)
{
    ENTER("MPI_Fetch_and_op");
    emit_atomic(win, target, "FETCH_AND_ACCUMULATE", 1, 1);
    int result = PMPI_Fetch_and_op(b, r, type, target, at, op, win);
    DONE(result);
}

int MPI_Compare_and_swap(const void *b, const void *compare, void *r, MPI_Datatype type, int target, MPI_Aint at,
                         MPI_Win win)
{
    ENTER("MPI_Compare_and_swap");
    emit_atomic(win, target, "COMPARE_AND_SWAP", 1, 1);
    int result = PMPI_Compare_and_swap(b, compare, r, type, target, at, win);
    DONE(result);
}
