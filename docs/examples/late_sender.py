# %% [markdown]
# # Find the cause of a late sender
#
# A stencil code on eight ranks exchanges halos with `MPI_Isend`, `MPI_Irecv` and `MPI_Waitall`, and spends much of
# its time waiting. Who is to blame, and what would help? The trace ships with whywait.

# %%
import whywait

run = whywait.open("tests/data/stencil")
run

# %%
result = whywait.analyze(run)
focus = result.summary()["focus"]
account = focus["account"]
print(f"{account['share']:.1%} of {focus['phrase']} is waiting: {1e3 * account['waiting']:.0f} ms")

# %% [markdown]
# ## Where is the waiting?
#
# Values by call path are sums over all ranks.

# %%
late = result.metrics["mpi_latesender"]
for row in late.by_callpath().to_pylist():
    if row["value"]:
        print(f"{1e3 * row['value']:6.1f} ms  {' > '.join(row['callpath'])}")
print()
for row in late.by_rank().to_pylist():
    print(f"rank {row['rank']}  {1e3 * row['value']:5.1f} ms  " + "#" * round(400 * row["value"]))

# %% [markdown]
# Nearly all of it is in `MPI_Waitall` of the halo exchange, on all ranks but one. Rank 5 hardly waits: often, the
# rank that does not wait is the one that the others wait for.
#
# ## For whom?
#
# Each wait state is a row that names the rank that caused it.

# %%
from collections import Counter

for_whom = Counter()
for wait in result.wait_states().to_pylist():
    if wait["kind"] == "mpi_latesender":
        for_whom[wait["cause_rank"]] += wait["waiting"]
for rank, seconds in for_whom.most_common(4):
    print(f"{1e3 * seconds:6.1f} ms for rank {rank}")

# %% [markdown]
# Half of it is for rank 5, the rest for its neighbors, which send late because they waited for rank 5 themselves.
# Delay costs follow such chains back to their origin.
#
# ## Who causes it?

# %%
costs = Counter()
for row in result.delay_costs().to_pylist():
    costs[" > ".join(row["callpath"][-3:]), row["rank"]] += row["short_term"] + row["long_term"]
total = sum(costs.values())
for (callpath, rank), seconds in costs.most_common(4):
    print(f"{seconds / total:5.1%}  {callpath} on rank {rank}")

# %% [markdown]
# The cause is the work in `relax` on rank 5. The time is lost in communication, but the problem is not there.
#
# ## What would balancing save?

# %%
for row in focus["critical_path"]["callpaths"][:3]:
    print(
        f"{1e3 * row['time']:5.0f} ms of the critical path in {row['callpath'][-1]:9}"
        f"{1e3 * row['imbalance']:5.0f} ms less if balanced"
    )

# %% [markdown]
# So balancing would shorten the run of 742 ms by 87 ms. `result.write_html("report.html")` shows all this in a
# browser; `whywait explain tests/data/stencil` explains a single wait in words.
