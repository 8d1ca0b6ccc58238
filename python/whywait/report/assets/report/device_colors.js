// The colors of what a device does; what is not listed is idle without a reason.

const COLORS = {
  "busy.kernel": "--time-work", "busy.copy": "--time-p2p", latency: "--time-overhead", "idle.computes": "--time-threads",
  "idle.waits": "--time-waiting", "idle.library": "--time-collective", "idle.device_call": "--time-devices", "idle.other_device": "--time-onesided",
  "communication.wait": "--time-waiting", "communication.transfer": "--time-collective", "communication.unmatched": "--time-overhead",
};

export const color = (row) => `var(${COLORS[row] ?? "--time-library"})`;

// Whether a device, or its host, waits for others.
export const isWait = (row) => row === "idle.waits" || row === "communication.wait";
