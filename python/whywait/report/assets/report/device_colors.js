// The colors of what a device does; what is not listed is idle without a reason.

const COLORS = {
  "busy.kernel": "--time-work", "busy.copy": "--time-p2p", latency: "--time-overhead", "starved.host": "--time-threads", "starved.loading": "--time-io", "starved.gc": "--time-threads",
  "starved.compile": "--time-threads", "starved.alloc": "--time-devices", "starved.sync": "--time-devices",
  "starved.comm": "--time-waiting", "starved.library": "--time-collective", "starved.call": "--time-devices", "starved.other_device": "--time-onesided",
  "comm.wait": "--time-waiting", "comm.transfer": "--time-collective", "comm.excess": "--time-onesided",
  "comm.unmatched": "--time-overhead", "comm.unseen": "--time-overhead", profiler: "--time-overhead",
};

export const color = (row) => `var(${COLORS[row.startsWith("comm.wait.") ? "comm.wait" : row] ?? "--time-library"})`;

// Whether a device, or its host, waits for others.
export const isWait = (row) => row === "starved.comm" || row.startsWith("comm.wait.");
