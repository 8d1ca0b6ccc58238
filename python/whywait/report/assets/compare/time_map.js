// Maps times between a measured and a simulated run: for each location, sorted pairs of corresponding times, with
// linear interpolation between them.

export class TimeMap {
  /**
   * @param {Record<string, any>} columns location, measured, simulated
   * @param {number} count of locations
   */
  constructor({ location, measured, simulated }, count) {
    this.times = [measured, simulated];
    this.offsets = new Uint32Array(count + 1);
    for (const number of location) this.offsets[number + 1]++;
    for (let i = 0; i < count; i++) this.offsets[i + 1] += this.offsets[i];
  }

  // Converts a time of one run (0 measured, 1 simulated) to the other.
  other(side, location, time) {
    const [here, there] = [this.times[side], this.times[1 - side]];
    const [first, end] = [this.offsets[location], this.offsets[location + 1]];
    if (first === end) return time;
    // The last pair that is not after it.
    let [low, high] = [first, end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (here[middle] <= time) low = middle + 1;
      else high = middle;
    }
    const before = low - 1;
    if (before < first) return there[first] + time - here[first];
    if (low === end || here[before] === time) return there[before] + time - here[before];
    return there[before] + ((time - here[before]) / (here[low] - here[before])) * (there[low] - there[before]);
  }
}
