# %% [markdown]
# # Who holds the lock?
#
# Passive target: ranks lock the window of rank 0, work while they hold it, and unlock. Who waits for a lock
# does not wait for the other to *begin* something, as in all other wait states, but for it to *end*. The
# program has a phase `queue`, in which ranks 1, 2 and 3 want the same lock one after the other.

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
# Rank 3 waits twice as long as rank 2, and half of that is inherited: it waits for rank 2, which waited for
# rank 1.
#
# ## Who is to blame?
#
# Each call path that made others wait longer is charged for it. `interval_lock` is the class of time with a
# lock in hand.

# %%
rows = result.delay_costs().to_pylist()
for row in sorted(rows, key=lambda row: -row["short_term"] - row["long_term"]):
    if row["class"] == "interval_lock" and "queue" in row["callpath"] and row["short_term"] + row["long_term"] > 1e-3:
        print(
            f"rank {row['rank']}  {' > '.join(row['callpath'][-2:]):12} {1e3 * row['short_term']:5.1f} ms at once, "
            f"{1e3 * row['long_term']:5.1f} ms through others"
        )

# %% [markdown]
# The work of rank 1 under the lock costs most: rank 2 waits for it, rank 3 waits for rank 2, and at the
# barrier that ends the phase everybody waits for rank 3. So the remedy is not at the lock calls but between
# them: hold the lock for a shorter time, or give the three ranks locks of their own.
