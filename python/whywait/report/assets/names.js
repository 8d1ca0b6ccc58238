// Short names of regions.

// A C++ function without types and parameters; see `short_name` of the terminal.
export function shortName(name) {
  return shortNames.get(name) ?? name;
}
export const shortNames = new Map();
