/*
 * Every kind of collective call, each in a function of its own in which one rank is late by LATE ms and all others come
 * at the same time; what that costs each rank is stated beside it.
 */
#include <mpi.h>

#include "known.h"

enum { ROOT = 1, SLOW = 2, COUNT = 64 };
static const double LATE = 20;

static int rank, size;
static double in[64 * COUNT], out[64 * COUNT];

/* All ranks leave this together, then those of `slow` (a bit each) are late. */
static void delay(int slow)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (slow >> rank & 1)
        work(LATE);
}

static void late_at_barrier(void)
{
    delay(1 << SLOW);
    MPI_Barrier(MPI_COMM_WORLD);
    expect("mpi_barrier_wait", "late_at_barrier/MPI_Barrier", rank == SLOW ? 0 : LATE, SLOW);
}

/* Each rank later than the one before: the waits differ. */
static void stairs_to_barrier(void)
{
    delay(0);
    work(LATE * rank);
    MPI_Barrier(MPI_COMM_WORLD);
    expect("mpi_barrier_wait", "stairs_to_barrier/MPI_Barrier", LATE * (size - 1 - rank), size - 1);
}

static void late_root_of_bcast(void)
{
    delay(1 << ROOT);
    MPI_Bcast(in, COUNT, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    expect("mpi_latebroadcast", "late_root_of_bcast/MPI_Bcast", rank == ROOT ? 0 : LATE, ROOT);
}

static void late_root_of_scatter(void)
{
    delay(1 << ROOT);
    MPI_Scatter(in, COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    expect("mpi_latebroadcast", "late_root_of_scatter/MPI_Scatter", rank == ROOT ? 0 : LATE, ROOT);
}

/* A late receiver of a broadcast keeps nobody. */
static void late_leaf_of_bcast(void)
{
    delay(1 << 0);
    MPI_Bcast(in, COUNT, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    expect("mpi_latebroadcast", "late_leaf_of_bcast/MPI_Bcast", 0, -1);
}

static void early_root_of_reduce(void)
{
    delay(1 << SLOW);
    MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, ROOT, MPI_COMM_WORLD);
    expect("mpi_earlyreduce", "early_root_of_reduce/MPI_Reduce", rank == ROOT ? LATE : 0, SLOW);
}

static void early_root_of_gather(void)
{
    delay(1 << SLOW);
    MPI_Gather(in, COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    expect("mpi_earlyreduce", "early_root_of_gather/MPI_Gather", rank == ROOT ? LATE : 0, SLOW);
}

static void early_root_of_gatherv(void)
{
    int counts[64], at[64];
    for (int i = 0; i < size; i++)
        counts[i] = i + 1, at[i] = i * COUNT;
    delay(1 << SLOW);
    MPI_Gatherv(in, rank + 1, MPI_DOUBLE, out, counts, at, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    expect("mpi_earlyreduce", "early_root_of_gatherv/MPI_Gatherv", rank == ROOT ? LATE : 0, SLOW);
}

static void late_at_allreduce(void)
{
    delay(1 << SLOW);
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect("mpi_wait_nxn", "late_at_allreduce/MPI_Allreduce", rank == SLOW ? 0 : LATE, SLOW);
}

static void late_at_allgather(void)
{
    delay(1 << SLOW);
    MPI_Allgather(in, COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, MPI_COMM_WORLD);
    expect("mpi_wait_nxn", "late_at_allgather/MPI_Allgather", rank == SLOW ? 0 : LATE, SLOW);
}

static void late_at_alltoall(void)
{
    delay(1 << SLOW);
    MPI_Alltoall(in, COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, MPI_COMM_WORLD);
    expect("mpi_wait_nxn", "late_at_alltoall/MPI_Alltoall", rank == SLOW ? 0 : LATE, SLOW);
}

static void late_at_reduce_scatter(void)
{
    delay(1 << SLOW);
    MPI_Reduce_scatter_block(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect("mpi_wait_nxn", "late_at_reduce_scatter/MPI_Reduce_scatter_block", rank == SLOW ? 0 : LATE, SLOW);
}

/* Who sends to whom is not in the trace: the waiting is there, but no metric may claim it. */
static void late_at_alltoallv(void)
{
    int counts[64], at[64];
    for (int i = 0; i < size; i++)
        counts[i] = 8, at[i] = i * COUNT;
    delay(1 << SLOW);
    MPI_Alltoallv(in, counts, at, MPI_DOUBLE, out, counts, at, MPI_DOUBLE, MPI_COMM_WORLD);
    expect("mpi_wait_nxn", "late_at_alltoallv/MPI_Alltoallv", 0, -1);
}

static void early_at_scan(void)
{
    delay(1 << ROOT);
    MPI_Scan(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect("mpi_earlyscan", "early_at_scan/MPI_Scan", rank > ROOT ? LATE : 0, ROOT);
}

static void early_at_exscan(void)
{
    delay(1 << ROOT);
    MPI_Exscan(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect("mpi_earlyscan", "early_at_exscan/MPI_Exscan", rank > ROOT ? LATE : 0, ROOT);
}

/* Even and odd ranks apart, in reverse order: rank 3 is rank 0 of its communicator and broadcasts late. */
static void sub_communicators(void)
{
    MPI_Comm half, twin;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(half, &twin);
    delay(1 << 3 | 1 << 0);
    MPI_Bcast(in, COUNT, MPI_DOUBLE, 0, half);
    expect("mpi_latebroadcast", "sub_communicators/MPI_Bcast", rank == 1 ? LATE : 0, 3);
    delay(1 << 0);
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, twin);
    expect("mpi_wait_nxn", "sub_communicators/MPI_Allreduce", rank == 2 ? LATE : 0, 0);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);
}

static void alone(void)
{
    delay(1 << SLOW);
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Bcast(in, COUNT, MPI_DOUBLE, 0, MPI_COMM_SELF);
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    expect("mpi_wait_nxn+mpi_latebroadcast", "alone", 0, -1);
}

/* Nothing of a non-blocking collective is in a trace of Score-P 7: its wait is time without a reason. */
static void non_blocking(void)
{
    MPI_Request request;
    delay(1 << SLOW);
    MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("mpi_latesender+mpi_wait_nxn", "non_blocking", 0, -1);
}

static void late_at_finalize(void)
{
    delay(1 << SLOW);
    expect("mpi_finalize_wait", "main/MPI_Finalize", rank == SLOW ? 0 : LATE, SLOW);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    late_at_barrier();
    stairs_to_barrier();
    late_root_of_bcast();
    late_root_of_scatter();
    late_leaf_of_bcast();
    early_root_of_reduce();
    early_root_of_gather();
    early_root_of_gatherv();
    late_at_allreduce();
    late_at_allgather();
    late_at_alltoall();
    late_at_reduce_scatter();
    late_at_alltoallv();
    early_at_scan();
    early_at_exscan();
    sub_communicators();
    alone();
    non_blocking();
    late_at_finalize();
    MPI_Finalize();
    return 0;
}
