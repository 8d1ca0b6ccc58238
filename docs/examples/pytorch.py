# %% [markdown]
# # Why do GPUs wait for each other?
#
# A recommendation model trains on eight GPUs; each rank has written a trace with PyTorch's profiler
# ([how to record](../pytorch.md)). The profiler shows long NCCL kernels. Is that communication? The traces ship with
# whywait.

# %%
import whywait

run = whywait.open("python/whywait/demo/dlrm8")
result = whywait.analyze(run)
traces = result.facts["traces"]
print(f"{len(traces['ranks'])} of {traces['world_size']} ranks, steps {traces['steps']}")
for group in traces["groups"]:
    print(f"{group['name']}: {group['instances']} operations, matched by {group['method']}")

# %% [markdown]
# ## Communication, or waiting?
#
# A kernel of NCCL runs while it waits for other ranks, too. It waits until the last of them has begun it; the rest is
# transfer.

# %%
kernels = result.profile.total("ccl")
waits = [wait for wait in result.wait_states().to_pylist() if wait["kind"].startswith("ccl_")]
exposed = sum(wait["waiting"] for wait in waits)
hidden = result.profile.total("ccl_hidden")
print(f"in kernels that communicate {1e3 * kernels:5.1f} ms")
print(f"waiting                     {1e3 * (exposed + hidden):5.1f} ms, {(exposed + hidden) / kernels:.1%}")
print(f"  while nothing else runs   {1e3 * exposed:5.1f} ms")

# %% [markdown]
# Nearly all of it is waiting. But the profilers of the ranks started apart, and the first operation waits for that: the
# *focus* begins when all ranks have met.

# %%
begin, end = result.facts["focus_begin"], result.facts["focus_end"]
inside = sum(max(0.0, min(wait["enter"] + wait["waiting"], end) - max(wait["enter"], begin)) for wait in waits)
print(f"from {1e3 * begin:.1f} to {1e3 * end:.1f} ms, GPUs wait {1e3 * inside:.1f} ms for each other")

# %% [markdown]
# ## What do GPUs do?
#
# Each moment of each device has one reason.

# %%
from collections import Counter

rows = Counter()
for row in result.device_account().to_pylist():
    rows[row["row"]] += row["time"]
for name, time in rows.most_common(8):
    print(
        f"{name:16} {1e3 * time:5.1f} ms  {time / sum(rows.values()):5.1%}  "
        + "#" * round(60 * time / sum(rows.values()))
    )

# %% [markdown]
# ## Why, and what would help?

# %%
found = result.findings(prices=True)
print(found.verdict())
for number, one in enumerate(found.shown, 1):
    print(f"\n{number}. {one.sentence}\n   {one.advice}")

# %% [markdown]
# ## Who is late?
#
# The waiting of each rank is charged to what made another one late: its kernels, its host, its data loader.

# %%
costs = Counter()
for row in result.delay_costs().to_pylist():
    costs[row["rank"], row["callpath"][-1]] += row["short_term"] + row["long_term"]
for (rank, name), time in costs.most_common(6):
    print(f"{1e3 * time:5.2f} ms  rank {rank}  {name}")
