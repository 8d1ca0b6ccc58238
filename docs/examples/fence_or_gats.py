# %% [markdown]
# # Fences, or post and start?
#
# A solver (successive over-relaxation on four ranks) exchanges its edges with `MPI_Put`. One version puts between
# fences; the other uses general active target synchronization (post, start, complete, wait), which synchronizes
# only neighbors. What is the difference?

# %%
import whywait

fence, gats = whywait.analyze("tests/data/sor_fence"), whywait.analyze("tests/data/sor_gats")
for name in ("time", "mpi_rma_synchronization", "mpi_rma_wait_at_fence", "mpi_rma_sync_late_post"):
    one, other = (1e3 * result.metrics[name].total for result in (fence, gats))
    print(f"{fence.metrics[name].display_name:20} {one:8.2f} ms {other:8.2f} ms")

# %% [markdown]
# In a fence, each rank waits for everyone. With post and start, it waits only for its neighbors to expose their
# windows (*Late Post*). This takes less time in total; but where is the time saved?

# %%
both = whywait.compare(fence, gats, names=("fence", "gats"))
for row in both.differences().slice(0, 6).to_pylist():
    print(f"{1e3 * row['difference']:+8.2f} ms  {row['metric']:24} {row['callpath'][-1]}")

# %% [markdown]
# How many pairs of processes synchronized, and how many of these needed to, because they exchanged data?

# %%
for result in (fence, gats):
    pairs, unneeded = (result.metrics[f"mpi_rma_pairsync{suffix}_count"].total for suffix in ("", "_unneeded"))
    print(f"{result.run.name:10} {pairs:4} pairs synchronized, {unneeded:4} of them for nothing")

# %% [markdown]
# These short runs spend most of their time in `MPI_Init`. For the solver alone, use a time window from its first
# wait to its last:

# %%
for result in (fence, gats):
    waits = [wait for wait in result.wait_states().to_pylist() if "solve" in wait["callpath"]]
    window = min(wait["enter"] for wait in waits), max(wait["leave"] for wait in waits)
    print(f"{result.run.name}, {1e3 * (window[1] - window[0]):.1f} ms")
    for one in result.efficiencies(window=window):
        print(f"   {one.display_name:25} {one.value:.2f} = {one.formula}")

# %% [markdown]
# To compare everything side by side in a browser:

# %%
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as directory:
    page = Path(directory) / "diff.html"
    both.write_html(page)
    print(page.name, "has less than 1 MB:", page.stat().st_size < 1_000_000)
