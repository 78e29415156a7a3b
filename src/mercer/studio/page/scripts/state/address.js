/**
 * A scene in the fragment of the address: compressed, in letters that addresses may hold.
 * It is never sent anywhere; whoever has the address and a studio sees the same scene.
 */

import { rows, sceneOf } from "./scene.js";

const MARK = "s1."; // first letters: the version of this format

/**
 * Write a scene as a fragment.
 *
 * @param {import("./scene.js").Scene} scene
 * @returns {Promise<string>}
 */
export async function fragmentOf(scene) {
  const plain = {
    task: scene.task,
    ...(scene.table ? { table: scene.table } : { points: rows(scene) }),
    machine: scene.machine,
    parameters: scene.parameters,
    kernel: scene.kernel,
    view: { bounds: scene.bounds, ...(scene.plane ? { plane: scene.plane } : {}) },
  };
  const bytes = new TextEncoder().encode(JSON.stringify(plain));
  return MARK + letters(await through(bytes, new CompressionStream("deflate-raw")));
}

/**
 * Read a fragment; null if it holds no scene.
 *
 * @param {string} fragment with or without "#"
 * @returns {Promise<import("./scene.js").Scene | null>}
 */
export async function sceneOfFragment(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(MARK)) return null;
  try {
    const bytes = await through(bytesOf(text.slice(MARK.length)), new DecompressionStream("deflate-raw"));
    return checked(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return null; // cut or mistyped: the page begins as without one
  }
}

/**
 * Return the scene of plain JSON from an address, or null where a part is not what it must be.
 *
 * @param {any} plain
 */
function checked(plain) {
  const finite = (/** @type {any} */ list) => Array.isArray(list) && list.every(Number.isFinite);
  if (typeof plain?.task !== "string" || typeof plain.machine !== "string") return null;
  if (plain.points && !(Array.isArray(plain.points) && plain.points.every(finite))) return null;
  const bounds = plain.view?.bounds;
  if (bounds && !(finite(bounds) && bounds.length === 4 && bounds[0] < bounds[1] && bounds[2] < bounds[3])) return null;
  return sceneOf(plain);
}

/**
 * @param {Uint8Array} bytes
 * @param {CompressionStream | DecompressionStream} stream
 * @returns {Promise<Uint8Array>}
 */
async function through(bytes, stream) {
  const changed = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(changed).arrayBuffer());
}

/** @param {Uint8Array} bytes */
function letters(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text */
function bytesOf(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}
