# %% [markdown]
# # Who holds the lock?
#
# In passive target synchronization, ranks lock the window of rank 0, work while they hold the lock, and unlock.
# In all other wait states, a process waits for another to *begin* something. A process that wants a lock waits
# for something to *end*. In the phase `queue` of this program, ranks 1, 2 and 3 request the same lock in turn.

# %%
import whywait

result = whywait.analyze("tests/data/rma_lock_sm")
contention = result.metrics["mpi_rma_sync_lock_competition"]
print(contention.description)
for row in contention.by_callpath().to_pylist():
    if row["value"]:
        print(f"{1e3 * row['value']:6.1f} ms  {' > '.join(row['callpath'])}")

# %% [markdown]
# ## One wait at a time

# %%
for wait in result.wait_states().to_pylist():
    if wait["kind"] == contention.name and "queue" in wait["callpath"]:
        print(
            f"rank {wait['rank']} waits {1e3 * wait['waiting']:.1f} ms for {wait['cause_callpath'][-1]} on "
            f"rank {wait['cause_rank']}: {1e3 * wait['direct']:.1f} ms because of what that does with the lock, "
            f"{1e3 * wait['indirect']:.1f} ms because it waited itself"
        )

# %% [markdown]
# Rank 3 waits twice as long as rank 2. Half of that is indirect: it waits for rank 2, which waited for rank 1.
#
# ## Who is to blame?
#
# Each call path is charged for the waiting that it causes. The class `interval_lock` stands for time in which a
# lock is held.

# %%
rows = result.delay_costs().to_pylist()
for row in sorted(rows, key=lambda row: -row["short_term"] - row["long_term"]):
    if row["class"] == "interval_lock" and "queue" in row["callpath"] and row["short_term"] + row["long_term"] > 1e-3:
        print(
            f"rank {row['rank']}  {' > '.join(row['callpath'][-2:]):12} {1e3 * row['short_term']:5.1f} ms at once, "
            f"{1e3 * row['long_term']:5.1f} ms through others"
        )

# %% [markdown]
# The work of rank 1 under the lock costs most: rank 2 waits for it, rank 3 waits for rank 2, and at the barrier
# that ends the phase, everyone waits for rank 3. So do not change the lock calls but the work between them:
# hold the lock for a shorter time, or give each of the three ranks its own lock.
