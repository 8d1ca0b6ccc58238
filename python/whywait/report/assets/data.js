// Blocks of compressed columns and documents, unpacked when needed; blocks.py defines the format. They are embedded in
// the page, or provided by a server (`whywait serve`).

// Whether the page has a block.
export function hasBlock(name) {
  return document.getElementById(`data-${name}`) !== null;
}

async function content(name, query) {
  const block = document.getElementById(`data-${name}`);
  if (block.dataset.served === undefined) return block.textContent;
  // The secret in the address of the page.
  const asked = new URLSearchParams(query ?? "");
  asked.set("token", new URLSearchParams(location.search).get("token") ?? "");
  const answer = await fetch(`data/${name}?${asked}`);
  if (!answer.ok) throw new Error(`the server has no ${name} (${answer.status})`);
  return answer.text();
}

async function unpacked(name, query) {
  const text = atob(await content(name, query));
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function documentBlock(name) {
  return JSON.parse(new TextDecoder().decode(await unpacked(name)));
}

const ARRAYS = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

// A server may want a query, such as a window, for a block.
export async function columnBlock(name, query = null) {
  const raw = await unpacked(name, query);
  let start = 4 + new DataView(raw.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(4, start)));
  const columns = {};
  for (const [column, type, rows] of head) {
    const array = new ARRAYS[type](rows);
    const bytes = new Uint8Array(array.buffer);
    const size = array.BYTES_PER_ELEMENT;
    for (let plane = 0; plane < size; plane++) {
      for (let row = 0, to = plane; row < rows; row++, to += size) bytes[to] = raw[start++];
    }
    columns[column] = array;
  }
  return columns;
}
