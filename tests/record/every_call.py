"""A program in C that calls each function of MPI that an MPI has, by what its mpi.h declares.

Each call is of two ranks, and prints its return code; what is not called, and why, is in `NOT_CALLED`.
"""

import re
import subprocess

from .mpis import ENVIRONMENT

# Statements by function. In them: me, other (ranks), world (a duplicate of MPI_COMM_WORLD), a, b and z (arrays of 64
# int), v and w (counts and displacements for two ranks), t (types for two ranks), r (a request), q (two requests), s (a
# status), ss (two), f (an int), p (two int).
_P2P = {
    "MPI_Send": "if (me) MPI_Recv(b, 1, I, 0, 1, world, &s); else CALL(MPI_Send(a, 1, I, 1, 1, world));",
    "MPI_Recv": "if (me) MPI_Send(a, 1, I, 0, 1, world); else CALL(MPI_Recv(b, 1, I, 1, 1, world, &s));",
    "MPI_Ssend": "if (me) MPI_Recv(b, 1, I, 0, 1, world, &s); else CALL(MPI_Ssend(a, 1, I, 1, 1, world));",
    "MPI_Bsend": "if (me) MPI_Recv(b, 1, I, 0, 1, world, &s); else CALL(MPI_Bsend(a, 1, I, 1, 1, world));",
    "MPI_Rsend": "MPI_Irecv(b, 1, I, other, 1, world, &r); MPI_Barrier(world);"
    " CALL(MPI_Rsend(a, 1, I, other, 1, world)); MPI_Wait(&r, &s);",
    "MPI_Sendrecv": "CALL(MPI_Sendrecv(a, 1, I, other, 1, b, 1, I, other, 1, world, &s));",
    "MPI_Sendrecv_replace": "CALL(MPI_Sendrecv_replace(a, 1, I, other, 1, other, 1, world, &s));",
    "MPI_Isendrecv": "CALL(MPI_Isendrecv(a, 1, I, other, 1, b, 1, I, other, 1, world, &r)); MPI_Wait(&r, &s);",
    "MPI_Isendrecv_replace": "CALL(MPI_Isendrecv_replace(a, 1, I, other, 1, other, 1, world, &r)); MPI_Wait(&r, &s);",
    "MPI_Probe": "MPI_Isend(a, 1, I, other, 1, world, &r); CALL(MPI_Probe(other, 1, world, &s));"
    " MPI_Recv(b, 1, I, other, 1, world, &s); MPI_Wait(&r, &s);",
    "MPI_Iprobe": "CALL(MPI_Iprobe(other, 77, world, &f, &s));",
    "MPI_Improbe": "MPI_Message m; CALL(MPI_Improbe(other, 77, world, &f, &m, &s));",
    "MPI_Mprobe": "MPI_Message m; MPI_Isend(a, 1, I, other, 1, world, &r); CALL(MPI_Mprobe(other, 1, world, &m, &s));"
    " MPI_Mrecv(b, 1, I, &m, &s); MPI_Wait(&r, &s);",
    "MPI_Mrecv": "MPI_Message m; MPI_Isend(a, 1, I, other, 1, world, &r); MPI_Mprobe(other, 1, world, &m, &s);"
    " CALL(MPI_Mrecv(b, 1, I, &m, &s)); MPI_Wait(&r, &s);",
    "MPI_Imrecv": "MPI_Message m; MPI_Isend(a, 1, I, other, 1, world, &q[0]); MPI_Mprobe(other, 1, world, &m, &s);"
    " CALL(MPI_Imrecv(b, 1, I, &m, &q[1])); MPI_Waitall(2, q, ss);",
    "MPI_Cancel": "MPI_Irecv(b, 1, I, other, 78, world, &r); CALL(MPI_Cancel(&r)); MPI_Wait(&r, &s);",
    "MPI_Request_free": "MPI_Recv_init(b, 1, I, other, 1, world, &r); CALL(MPI_Request_free(&r));",
    "MPI_Start": "MPI_Send_init(a, 1, I, MPI_PROC_NULL, 1, world, &r); CALL(MPI_Start(&r)); MPI_Wait(&r, &s);"
    " MPI_Request_free(&r);",
    "MPI_Startall": "MPI_Send_init(a, 1, I, other, 1, world, q); MPI_Recv_init(b, 1, I, other, 1, world, q + 1);"
    " CALL(MPI_Startall(2, q)); MPI_Waitall(2, q, ss); MPI_Request_free(q); MPI_Request_free(q + 1);",
    "MPI_Request_get_status": "CALL(MPI_Request_get_status(MPI_REQUEST_NULL, &f, &s));",
    "MPI_Psend_init": "CALL(MPI_Psend_init(a, 2, 1, I, other, 1, world, MPI_INFO_NULL, &q[0]));"
    " MPI_Precv_init(b, 2, 1, I, other, 1, world, MPI_INFO_NULL, &q[1]); MPI_Startall(2, q);"
    " MPI_Pready_range(0, 1, q[0]); MPI_Waitall(2, q, ss); MPI_Request_free(q); MPI_Request_free(q + 1);",
}  # fmt: skip
for _kind, _first in (("Isend", ""), ("Issend", ""), ("Ibsend", ""), ("Irsend", "MPI_Barrier(world);")):
    _P2P[f"MPI_{_kind}"] = (
        f"MPI_Irecv(b, 1, I, other, 1, world, &q[1]); {_first} CALL(MPI_{_kind}(a, 1, I, other, 1, world, &q[0]));"
        " MPI_Waitall(2, q, ss);"
    )
_P2P["MPI_Irecv"] = (
    "CALL(MPI_Irecv(b, 1, I, other, 1, world, &q[1])); MPI_Isend(a, 1, I, other, 1, world, &q[0]);"
    " MPI_Waitall(2, q, ss);"
)
for _kind in ("Send_init", "Ssend_init", "Bsend_init", "Rsend_init"):
    _first = "MPI_Barrier(world);" if _kind[0] == "R" else ""
    _P2P[f"MPI_{_kind}"] = (
        f"MPI_Irecv(b, 1, I, other, 1, world, &r); {_first} CALL(MPI_{_kind}(a, 1, I, other, 1, world, &q[0]));"
        " MPI_Start(q); MPI_Wait(q, &s); MPI_Request_free(q); MPI_Wait(&r, &s);"
    )
_P2P["MPI_Recv_init"] = (
    "CALL(MPI_Recv_init(b, 1, I, other, 1, world, &q[0])); MPI_Start(q);"
    " MPI_Send(a, 1, I, other, 1, world); MPI_Wait(q, &s); MPI_Request_free(q);"
)
_PAIR = "MPI_Irecv(b, 1, I, other, 1, world, &q[1]); MPI_Isend(a, 1, I, other, 1, world, &q[0]);"
for _name, _call in {
    "Wait": "CALL(MPI_Wait(&q[0], &s)); MPI_Wait(&q[1], &s);",
    "Waitall": "CALL(MPI_Waitall(2, q, ss));",
    "Waitany": "CALL(MPI_Waitany(2, q, &f, &s)); MPI_Waitall(2, q, ss);",
    "Waitsome": "CALL(MPI_Waitsome(2, q, &f, p, ss)); MPI_Waitall(2, q, ss);",
    "Test": "CALL(MPI_Test(&q[1], &f, &s)); MPI_Waitall(2, q, ss);",
    "Testall": "CALL(MPI_Testall(2, q, &f, ss)); MPI_Waitall(2, q, ss);",
    "Testany": "CALL(MPI_Testany(2, q, &f, p, &s)); MPI_Waitall(2, q, ss);",
    "Testsome": "CALL(MPI_Testsome(2, q, &f, p, ss)); MPI_Waitall(2, q, ss);",
}.items():
    _P2P[f"MPI_{_name}"] = f"{_PAIR} {_call}"

# Arguments of collective operations before the communicator.
COLLECTIVE = {
    "Barrier": "",
    "Bcast": "a, 4, I, 0",
    "Gather": "a, 4, I, b, 4, I, 0",
    "Gatherv": "a, v[me], I, b, v, w, I, 0",
    "Scatter": "a, 4, I, b, 4, I, 0",
    "Scatterv": "a, v, w, I, b, v[me], I, 0",
    "Allgather": "a, 4, I, b, 4, I",
    "Allgatherv": "a, v[me], I, b, v, w, I",
    "Alltoall": "a, 4, I, b, 4, I",
    "Alltoallv": "a, u, w, I, b, u, w, I",
    "Alltoallw": "a, u, x, t, b, u, x, t",
    "Reduce": "a, b, 4, I, MPI_SUM, 0",
    "Allreduce": "a, b, 4, I, MPI_SUM",
    "Reduce_scatter": "a, b, v, I, MPI_SUM",
    "Reduce_scatter_block": "a, b, 4, I, MPI_SUM",
    "Scan": "a, b, 4, I, MPI_SUM",
    "Exscan": "a, b, 4, I, MPI_SUM",
}  # fmt: skip
_NEIGHBOR = {
    "Allgather": "a, 4, I, b, 4, I",
    "Allgatherv": "a, 4, I, b, u, w, I",
    "Alltoall": "a, 4, I, b, 4, I",
    "Alltoallv": "a, u, w, I, b, u, w, I",
    "Alltoallw": "a, u, y, t, b, u, y, t",
}


def _collectives():
    """Yield blocking, non-blocking, and persistent operations."""
    sets = [("", name, "world", arguments) for name, arguments in COLLECTIVE.items()]
    sets += [("neighbor_", name.lower(), "ring", arguments) for name, arguments in _NEIGHBOR.items()]
    for before, name, comm, arguments in sets:
        given = f"{arguments}, {comm}" if arguments else comm
        plain = (before + name).capitalize() if before else name
        yield f"MPI_{plain}", f"CALL(MPI_{plain}({given}));"
        yield f"MPI_I{plain.lower()}", f"CALL(MPI_I{plain.lower()}({given}, &r)); MPI_Wait(&r, &s);"
        persistent = f"CALL(MPI_{plain}_init({given}, MPI_INFO_NULL, &r));"
        yield f"MPI_{plain}_init", f"{persistent} MPI_Start(&r); MPI_Wait(&r, &s); MPI_Request_free(&r);"


_FREE = "MPI_Comm_free(&c);"
_COMMS = {
    "MPI_Comm_dup": f"CALL(MPI_Comm_dup(world, &c)); {_FREE}",
    "MPI_Comm_idup": f"CALL(MPI_Comm_idup(world, &c, &r)); MPI_Wait(&r, &s); {_FREE}",
    "MPI_Comm_dup_with_info": f"CALL(MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &c)); {_FREE}",
    "MPI_Comm_split": f"CALL(MPI_Comm_split(world, 0, me, &c)); {_FREE}",
    "MPI_Comm_split_type": f"CALL(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &c)); {_FREE}",
    "MPI_Comm_create": f"CALL(MPI_Comm_create(world, group, &c)); {_FREE}",
    "MPI_Comm_create_group": f"CALL(MPI_Comm_create_group(world, group, 3, &c)); {_FREE}",
    "MPI_Comm_free": "MPI_Comm_dup(world, &c); CALL(MPI_Comm_free(&c));",
    "MPI_Comm_set_name": 'CALL(MPI_Comm_set_name(world, "twin"));',
    "MPI_Cart_create": f"int d[1] = {{2}}, o[1] = {{1}}; CALL(MPI_Cart_create(world, 1, d, o, 0, &c)); {_FREE}",
    "MPI_Cart_sub": f"int k[1] = {{1}}; CALL(MPI_Cart_sub(ring, k, &c)); {_FREE}",
    "MPI_Graph_create": "int i[2] = {1, 2}, e[2] = {1, 0}; CALL(MPI_Graph_create(world, 2, i, e, 0, &c));" + _FREE,
    "MPI_Dist_graph_create_adjacent": "int e[1] = {other}; CALL(MPI_Dist_graph_create_adjacent(world, 1, e,"
    f" MPI_UNWEIGHTED, 1, e, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c)); {_FREE}",
    "MPI_Dist_graph_create": "int o[1] = {me}, n[1] = {1}, e[1] = {other}; "
    f"CALL(MPI_Dist_graph_create(world, 1, o, n, e, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c)); {_FREE}",
    "MPI_Intercomm_create": "MPI_Comm i; CALL(MPI_Intercomm_create(MPI_COMM_SELF, 0, world, other, 5, &i));"
    " MPI_Comm_free(&i);",
    "MPI_Intercomm_merge": "MPI_Comm i; MPI_Intercomm_create(MPI_COMM_SELF, 0, world, other, 5, &i);"
    f" CALL(MPI_Intercomm_merge(i, me, &c)); MPI_Comm_free(&i); {_FREE}",
    "MPI_Comm_compare": "CALL(MPI_Comm_compare(world, MPI_COMM_WORLD, &f));",
    "MPI_Comm_group": "MPI_Group g; CALL(MPI_Comm_group(world, &g)); MPI_Group_free(&g);",
    "MPI_Comm_rank": "CALL(MPI_Comm_rank(world, &f));",
    "MPI_Comm_size": "CALL(MPI_Comm_size(world, &f));",
    "MPI_Comm_test_inter": "CALL(MPI_Comm_test_inter(world, &f));",
    "MPI_Cart_coords": "CALL(MPI_Cart_coords(ring, me, 1, p));",
    "MPI_Cart_get": "int d[1], o[1]; CALL(MPI_Cart_get(ring, 1, d, o, p));",
    "MPI_Cart_rank": "p[0] = 0; CALL(MPI_Cart_rank(ring, p, &f));",
    "MPI_Cart_shift": "CALL(MPI_Cart_shift(ring, 0, 1, &f, p));",
    "MPI_Cartdim_get": "CALL(MPI_Cartdim_get(ring, &f));",
    "MPI_Topo_test": "CALL(MPI_Topo_test(ring, &f));",
    "MPI_Dims_create": "p[0] = p[1] = 0; CALL(MPI_Dims_create(6, 2, p));",
    "MPI_Group_size": "CALL(MPI_Group_size(group, &f));",
    "MPI_Group_rank": "CALL(MPI_Group_rank(group, &f));",
    "MPI_Group_compare": "CALL(MPI_Group_compare(group, group, &f));",
    "MPI_Group_translate_ranks": "p[0] = 0; CALL(MPI_Group_translate_ranks(group, 1, p, group, p + 1));",
}  # fmt: skip
for _name in ("union", "intersection", "difference"):
    _COMMS[f"MPI_Group_{_name}"] = f"MPI_Group g; CALL(MPI_Group_{_name}(group, group, &g));"
for _name in ("incl", "excl"):
    _COMMS[f"MPI_Group_{_name}"] = (
        f"MPI_Group g; p[0] = 0; CALL(MPI_Group_{_name}(group, 1, p, &g)); MPI_Group_free(&g);"
    )
    _COMMS[f"MPI_Group_range_{_name}"] = (
        f"MPI_Group g; int k[1][3] = {{{{0, 0, 1}}}};"
        f" CALL(MPI_Group_range_{_name}(group, 1, k, &g)); MPI_Group_free(&g);"
    )
_COMMS["MPI_Group_free"] = "MPI_Group g; MPI_Comm_group(world, &g); CALL(MPI_Group_free(&g));"

_LOCK = "MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win);"
_UNLOCK = "MPI_Win_unlock(other, win);"
_WINDOWS = {
    "MPI_Win_create": "MPI_Win n; CALL(MPI_Win_create(b, 64, 4, MPI_INFO_NULL, world, &n)); MPI_Win_free(&n);",
    "MPI_Win_allocate": "MPI_Win n; void *m; CALL(MPI_Win_allocate(64, 4, MPI_INFO_NULL, world, &m, &n));"
    " MPI_Win_free(&n);",
    "MPI_Win_allocate_shared": "MPI_Win n; void *m; CALL(MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, world, &m, &n));"
    " MPI_Win_free(&n);",
    "MPI_Win_create_dynamic": "MPI_Win n; CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &n)); MPI_Win_free(&n);",
    "MPI_Win_free": "MPI_Win n; MPI_Win_create(b, 64, 4, MPI_INFO_NULL, world, &n); CALL(MPI_Win_free(&n));",
    "MPI_Win_fence": "CALL(MPI_Win_fence(0, win)); MPI_Win_fence(0, win);",
    "MPI_Win_lock": f"CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win)); {_UNLOCK}",
    "MPI_Win_unlock": f"{_LOCK} CALL(MPI_Win_unlock(other, win));",
    "MPI_Win_lock_all": "CALL(MPI_Win_lock_all(0, win)); MPI_Win_unlock_all(win);",
    "MPI_Win_unlock_all": "MPI_Win_lock_all(0, win); CALL(MPI_Win_unlock_all(win));",
    "MPI_Win_flush": f"{_LOCK} CALL(MPI_Win_flush(other, win)); {_UNLOCK}",
    "MPI_Win_flush_local": f"{_LOCK} CALL(MPI_Win_flush_local(other, win)); {_UNLOCK}",
    "MPI_Win_flush_all": "MPI_Win_lock_all(0, win); CALL(MPI_Win_flush_all(win)); MPI_Win_unlock_all(win);",
    "MPI_Win_flush_local_all": "MPI_Win_lock_all(0, win); CALL(MPI_Win_flush_local_all(win)); MPI_Win_unlock_all(win);",
    "MPI_Win_sync": f"{_LOCK} CALL(MPI_Win_sync(win)); {_UNLOCK}",
    "MPI_Win_post": "CALL(MPI_Win_post(peers, 0, win)); MPI_Win_start(peers, 0, win);"
    " MPI_Win_complete(win); MPI_Win_wait(win);",
    "MPI_Win_start": "MPI_Win_post(peers, 0, win); CALL(MPI_Win_start(peers, 0, win));"
    " MPI_Win_complete(win); MPI_Win_wait(win);",
    "MPI_Win_complete": "MPI_Win_post(peers, 0, win); MPI_Win_start(peers, 0, win); "
    " CALL(MPI_Win_complete(win)); MPI_Win_wait(win);",
    "MPI_Win_wait": "MPI_Win_post(peers, 0, win); MPI_Win_start(peers, 0, win); "
    " MPI_Win_complete(win); CALL(MPI_Win_wait(win));",
    "MPI_Win_test": "MPI_Win_post(peers, 0, win); MPI_Win_start(peers, 0, win); MPI_Win_complete(win);"
    " CALL(MPI_Win_test(win, &f)); if (!f) MPI_Win_wait(win);",
    "MPI_Win_set_name": 'CALL(MPI_Win_set_name(win, "window"));',
    "MPI_Win_get_group": "MPI_Group g; CALL(MPI_Win_get_group(win, &g)); MPI_Group_free(&g);",
}  # fmt: skip
for _name, _arguments in {
    "Put": "a, 2, I, other, 0, 2, I, win",
    "Get": "b + 32, 2, I, other, 0, 2, I, win",
    "Accumulate": "a, 2, I, other, 0, 2, I, MPI_SUM, win",
    "Get_accumulate": "a, 2, I, b + 32, 2, I, other, 0, 2, I, MPI_SUM, win",
}.items():
    _WINDOWS[f"MPI_{_name}"] = f"{_LOCK} CALL(MPI_{_name}({_arguments})); {_UNLOCK}"
    _WINDOWS[f"MPI_R{_name.lower()}"] = (
        f"{_LOCK} CALL(MPI_R{_name.lower()}({_arguments}, &r)); MPI_Wait(&r, &s); {_UNLOCK}"
    )
_WINDOWS["MPI_Fetch_and_op"] = f"{_LOCK} CALL(MPI_Fetch_and_op(a, b + 32, I, other, 0, MPI_SUM, win)); {_UNLOCK}"
_WINDOWS["MPI_Compare_and_swap"] = f"{_LOCK} CALL(MPI_Compare_and_swap(a, a + 1, b + 32, I, other, 0, win)); {_UNLOCK}"


def _files():
    """Yield functions of files. Both ranks write to the same places, so what is in the file is not looked at."""
    for verb in ("read", "write"):
        for place in ("", "_at", "_shared"):
            offset = "me * 64, " if place == "_at" else ""
            for way in ("", "_all") if place != "_shared" else ("",):
                name = f"{verb}{place}{way}"
                yield f"MPI_File_{name}", f"CALL(MPI_File_{name}(file, {offset}z, 4, I, &s));"
                yield f"MPI_File_i{name}", f"CALL(MPI_File_i{name}(file, {offset}z, 4, I, &r)); MPI_Wait(&r, &s);"
        yield f"MPI_File_{verb}_ordered", f"CALL(MPI_File_{verb}_ordered(file, z, 4, I, &s));"
        for name, offset in (("all", ""), ("at_all", "me * 64, "), ("ordered", "")):
            begin, end = f"MPI_File_{verb}_{name}_begin", f"MPI_File_{verb}_{name}_end"
            yield begin, f"CALL({begin}(file, {offset}z, 4, I)); {end}(file, z, &s);"
            yield end, f"{begin}(file, {offset}z, 4, I); CALL({end}(file, z, &s));"
    yield "MPI_File_seek", "CALL(MPI_File_seek(file, 0, MPI_SEEK_SET));"
    yield "MPI_File_seek_shared", "CALL(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));"
    yield "MPI_File_sync", "CALL(MPI_File_sync(file));"
    yield "MPI_File_set_size", "CALL(MPI_File_set_size(file, 1024));"
    yield "MPI_File_preallocate", "CALL(MPI_File_preallocate(file, 1024));"
    yield "MPI_File_set_atomicity", "CALL(MPI_File_set_atomicity(file, 0));"
    yield "MPI_File_set_view", 'CALL(MPI_File_set_view(file, 0, I, I, "native", MPI_INFO_NULL));'
    for name in ("position", "position_shared", "size"):
        yield f"MPI_File_get_{name}", f"MPI_Offset o; CALL(MPI_File_get_{name}(file, &o));"
    mode = "MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE"
    opens = f'MPI_File_open(world, "every_other.dat", {mode}, MPI_INFO_NULL, &n)'
    yield "MPI_File_open", f"MPI_File n; CALL({opens}); MPI_File_close(&n);"
    yield "MPI_File_close", f"MPI_File n; {opens}; CALL(MPI_File_close(&n));"


_REST = {
    "MPI_Pcontrol": "CALL(MPI_Pcontrol(1));",
    "MPI_Type_contiguous": "MPI_Datatype d; CALL(MPI_Type_contiguous(2, I, &d)); MPI_Type_commit(&d);"
    " MPI_Type_free(&d);",
    "MPI_Type_vector": "MPI_Datatype d; CALL(MPI_Type_vector(2, 1, 2, I, &d)); MPI_Type_free(&d);",
    "MPI_Type_commit": "MPI_Datatype d; MPI_Type_contiguous(2, I, &d); CALL(MPI_Type_commit(&d)); MPI_Type_free(&d);",
    "MPI_Type_free": "MPI_Datatype d; MPI_Type_contiguous(2, I, &d); CALL(MPI_Type_free(&d));",
    "MPI_Type_dup": "MPI_Datatype d; CALL(MPI_Type_dup(I, &d)); MPI_Type_free(&d);",
    "MPI_Type_size": "CALL(MPI_Type_size(I, &f));",
    "MPI_Type_get_extent": "MPI_Aint l, e; CALL(MPI_Type_get_extent(I, &l, &e));",
    "MPI_Get_count": "MPI_Sendrecv(a, 1, I, me, 1, b, 1, I, me, 1, world, &s); CALL(MPI_Get_count(&s, I, &f));",
    "MPI_Get_address": "MPI_Aint l; CALL(MPI_Get_address(a, &l));",
    "MPI_Pack_size": "CALL(MPI_Pack_size(2, I, world, &f));",
    "MPI_Pack": "f = 0; CALL(MPI_Pack(a, 2, I, b, 64, &f, world));",
    "MPI_Unpack": "f = 0; CALL(MPI_Unpack(a, 64, &f, b, 2, I, world));",
    "MPI_Info_create": "MPI_Info i; CALL(MPI_Info_create(&i)); MPI_Info_free(&i);",
    "MPI_Info_set": 'MPI_Info i; MPI_Info_create(&i); CALL(MPI_Info_set(i, "key", "value")); MPI_Info_free(&i);',
    "MPI_Info_free": "MPI_Info i; MPI_Info_create(&i); CALL(MPI_Info_free(&i));",
    "MPI_Initialized": "CALL(MPI_Initialized(&f));",
    "MPI_Finalized": "CALL(MPI_Finalized(&f));",
    "MPI_Query_thread": "CALL(MPI_Query_thread(&f));",
    "MPI_Is_thread_main": "CALL(MPI_Is_thread_main(&f));",
    "MPI_Get_processor_name": "char n[MPI_MAX_PROCESSOR_NAME]; CALL(MPI_Get_processor_name(n, &f));",
    "MPI_Error_class": "CALL(MPI_Error_class(MPI_SUCCESS, &f));",
    "MPI_Error_string": "char n[MPI_MAX_ERROR_STRING]; CALL(MPI_Error_string(MPI_SUCCESS, n, &f));",
    "MPI_Alloc_mem": "void *m; CALL(MPI_Alloc_mem(64, MPI_INFO_NULL, &m)); MPI_Free_mem(m);",
    "MPI_Free_mem": "void *m; MPI_Alloc_mem(64, MPI_INFO_NULL, &m); CALL(MPI_Free_mem(m));",
    "MPI_Op_create": "MPI_Op o; CALL(MPI_Op_create(add, 1, &o)); MPI_Allreduce(a, b, 2, I, o, world); MPI_Op_free(&o);",
    "MPI_Op_free": "MPI_Op o; MPI_Op_create(add, 1, &o); CALL(MPI_Op_free(&o));",
    "MPI_Op_commutative": "CALL(MPI_Op_commutative(MPI_SUM, &f));",
    "MPI_Reduce_local": "CALL(MPI_Reduce_local(a, b, 2, I, MPI_SUM));",
    "MPI_Comm_get_name": "char n[MPI_MAX_OBJECT_NAME]; CALL(MPI_Comm_get_name(world, n, &f));",
    "MPI_Comm_set_errhandler": "CALL(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));",
}  # fmt: skip

CALLS = {**_P2P, **dict(_collectives()), **_COMMS, **_WINDOWS, **dict(_files()), **_REST}

_PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#define I MPI_INT
#define CALL(call) do { int code = call; fprintf(results, "%d %s %d\\n", me, #call, code); } while (0)
static void add(void *in, void *out, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)out)[i] += ((int *)in)[i];
}
static int me, other, a[64], b[64], z[64], v[2] = {3, 5}, w[2] = {0, 8}, u[2] = {4, 4}, x[2] = {0, 32}, f, p[2];
static char buffer[1 << 16];
static MPI_Aint y[2] = {0, 32};
static MPI_Comm world, ring, c;
static MPI_Group group, peers;
static MPI_Request r, q[2];
static MPI_Status s, ss[2];
static MPI_Win win;
static MPI_File file;
static MPI_Datatype t[2];
/* Of each rank: launchers may break lines into pieces and mix them. */
static FILE *results;

FUNCTIONS

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &me);
    other = 1 - me;
    results = fopen(me ? "results.1" : "results.0", "w");
    t[0] = t[1] = I;
    for (int i = 0; i < 64; i++) a[i] = 64 * me + i;
    int two[1] = {2}, yes[1] = {1};
    MPI_Cart_create(world, 1, two, yes, 0, &ring);
    MPI_Comm_group(world, &group);
    MPI_Group_incl(group, 1, &other, &peers);
    MPI_Win_create(b, sizeof b, 4, MPI_INFO_NULL, world, &win);
    MPI_File_open(world, "every.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 4096);
    MPI_Buffer_attach(buffer, sizeof buffer);
CALLS
    MPI_Buffer_detach(&buffer, &f);
    MPI_File_close(&file);
    MPI_Win_free(&win);
    long sum = 0;
    for (int i = 0; i < 64; i++) sum = 31 * sum + b[i];
    fprintf(results, "%d end %ld\\n", me, sum);
    fclose(results);
    MPI_Group_free(&peers);
    MPI_Group_free(&group);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
"""


def declared(compiler):
    """Return the functions that an MPI's mpi.h declares."""
    done = subprocess.run(
        [compiler, "-E", "-x", "c", "-"],
        input="#include <mpi.h>\n",
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"\b(MPI_\w+)\s*\(", done.stdout))


def program(functions):
    """Return the source of a program that calls these functions, in the order of `CALLS`."""
    names = [name for name in CALLS if name in functions]
    bodies = "\n".join(f"static void do_{name}(void) {{ {CALLS[name]} MPI_Barrier(world); }}" for name in names)
    calls = "\n".join(f"    do_{name}();" for name in names)
    return _PROGRAM.replace("FUNCTIONS", bodies).replace("CALLS", calls)
