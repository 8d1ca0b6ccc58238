// The devices: what each did and why it was idle, its kernels and copies, and the hosts that wait for it or starve it.

import { documentBlock, hasBlock } from "../data.js";
import { card, fill, hiddenHeading, make, tip } from "../dom.js";
import { percent, plural, quantity, seconds } from "../format.js";
import { color, isWait } from "./device_colors.js";
import { ranking } from "../ranking.js";
import { addView } from "../sections.js";

/** @type {[string, string, number][]} */
const EFFICIENCIES = [
  ["device_parallel_efficiency", "Device parallel efficiency", 0], ["device_load_balance", "Load balance", 1],
  ["device_communication_efficiency", "Communication", 1], ["device_orchestration_efficiency", "Orchestration", 1],
  ["device_offload_efficiency", "Offload efficiency of the host", 0],
];

const place = (path) => (path?.length ? path.slice(-2).join(" → ") : "outside of all regions");

export class Devices {
  constructor() {
    this.node = make("section", { class: "overview devices", "aria-label": "Devices" });
    /** @type {any} */
    this.found = null;
  }

  async follow() {
    if (this.found) return;
    this.found = await documentBlock("devices");
    fill(this.node, hiddenHeading("Devices"), this.accounts(), this.efficiencies(), this.kernels(), this.copies(), this.waits(), this.odd());
  }

  // A bar per device, with the rows of its account.
  accounts() {
    const { devices, rows } = this.found;
    const labels = new Map(rows);
    const order = rows.map(([name]) => name);
    const used = order.filter((row) => devices.some(({ account }) => account[row] > 0));
    const whole = (device) => order.reduce((sum, row) => sum + (device.account[row] ?? 0), 0) || 1;
    const bar = (device) => {
      const all = whole(device);
      const parts = used.filter((row) => device.account[row] > 0);
      const text = parts.map((row) => `${labels.get(row)} ${percent(device.account[row] / all)}`).join(", ");
      return make("div", { class: "device" }, make("h3", {}, device.name, device.ranks?.length && make("small", {}, ` rank ${device.ranks.join(", ")}`)),
        make("div", { class: "stack", role: "img", "aria-label": `${device.name}: ${text}` }, parts.map((row) => make("span", {
          class: `part${isWait(row) ? " waiting" : ""}`, style: { "flex-grow": device.account[row] / all, "--color": color(row) },
          onmousemove: (event) => tip.show(event, make("b", {}, labels.get(row)), make("br"), `${seconds(device.account[row])}, ${percent(device.account[row] / all)} of the focus`),
          onmouseleave: () => tip.hide(),
        }))));
    };
    const together = (device) => [device.streams_overlap > 0 && `several streams at once for ${seconds(device.streams_overlap)}`,
      device.copies_overlap > 0 && `copies beside kernels for ${seconds(device.copies_overlap)}`].filter(Boolean).join("; ");
    const table = this.table(["Device", ...used.map((row) => labels.get(row))], devices.map((device) => [device.name,
      ...used.map((row) => (device.account[row] ? `${seconds(device.account[row])} · ${percent(device.account[row] / whole(device))}` : "–"))]), 1);
    const overlaps = devices.filter(together);
    return card("What the devices did", "In the focus. A device is idle for what its host does meanwhile; a host that waits for a busy device loses nothing.",
      devices.slice(0, 16).map(bar), make("div", { class: "swatches" }, used.map((row) => make("span", {},
        make("i", { class: `swatch${isWait(row) ? " waiting" : ""}`, style: { "--color": color(row) } }), labels.get(row)))), table,
      overlaps.length > 0 && make("p", { class: "lead" }, overlaps.map((device) => `${device.name}: ${together(device)}.`).join(" ")));
  }

  efficiencies() {
    const values = this.found.efficiencies;
    if (!values) return null;
    return card("Efficiencies", "1 is best. By the definitions of TALP; the first is the product of those indented below it.",
      make("div", { class: "efficiencies" }, EFFICIENCIES.filter(([name]) => name in values).map(([name, title, depth]) => make("div", {
        class: "efficiency", style: { "--depth": depth, "--value": values[name] },
      }, make("span", { class: "name" }, title), make("span", { class: "track" }, make("i")), make("b", {}, values[name].toFixed(3))))));
  }

  kernels() {
    const { kernels } = this.found;
    if (!kernels?.length) return null;
    return card("Kernels", "Waits are sums over kernels: for the host to launch, of that while it waits in MPI, from the launch to the begin on an idle device, on a busy one, and of that for other streams.",
      this.table(["Kernel", "Device", "Count", "Total", "Mean", "Longest", "Starved", "In MPI", "Latency", "Queued", "For other streams"], kernels.map((one) => [
        make("code", { title: one.kernel }, one.kernel), one.device, String(one.count), ...["total", "mean", "longest", "starved", "mpi_starved", "latency", "queued", "stream_wait"].map((name) => seconds(one[name])),
      ]), 2), this.more("kernels"));
  }

  copies() {
    const { copies } = this.found;
    if (!copies?.length) return null;
    return card("Copies", null, this.table(["Direction", "Device", "Count", "Bytes", "Total", "Bytes per second", "Queued"], copies.map((one) => [
      one.direction, one.device, String(one.count), one.bytes === null ? "–" : quantity(one.bytes, "bytes"), seconds(one.total), one.rate === null ? "–" : quantity(one.rate, "bytes"), seconds(one.queued),
    ]), 2), this.more("copies"));
  }

  waits() {
    const { synchronizations, starving } = this.found;
    if (!synchronizations?.length && !starving?.length) return null;
    return card("Hosts", null,
      synchronizations.length > 0 && this.table(["Waits for devices in", "Rank", "Count", "Waiting", "After the device had ended"], synchronizations.map((one) => [
        place(one.callpath), String(one.rank), String(one.count), seconds(one.waiting), seconds(one.completion)]), 1),
      starving.length > 0 && this.table(["Starves devices in", "Rank", "Time"], starving.map((one) => [place(one.callpath), String(one.rank), seconds(one.starving)]), 1));
  }

  // Records that do not fit together, with their places.
  odd() {
    const { lost, unlaunched, clock_violations: late } = this.found;
    const items = [];
    if (lost?.length) items.push(`${plural(this.found.lost_count, "launch")} without a kernel: ${lost.slice(0, 5).map((one) => `rank ${one.rank} at ${one.enter.toFixed(6)} s`).join(", ")}`);
    if (unlaunched?.length) items.push(`${plural(this.found.unlaunched_count, "kernel")} without a launch: ${unlaunched.slice(0, 5).map((one) => `${one.kernel} at ${one.begin.toFixed(6)} s`).join(", ")}`);
    if (late) items.push(`${plural(late, "kernel")} that seem to end behind the call that awaits them`);
    return items.length ? card("Odd records", null, make("ul", { class: "odd" }, items.map((text) => make("li", {}, text)))) : null;
  }

  more(name) {
    const left = this.found[`${name}_count`] - this.found[name].length;
    return left > 0 && make("p", { class: "lead" }, `${left.toLocaleString("en-US")} more, shorter.`);
  }

  // A table whose columns from `first` on are numbers.
  table(heads, rows, first) {
    return make("div", { class: "wide" }, ranking("plain", heads, rows, (i) => i >= first));
  }
}

addView({ name: "devices", title: "Devices", key: "d", order: 45, exists: () => hasBlock("devices"), View: Devices });
