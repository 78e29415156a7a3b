/**
 * Numbers of the server's frames: arrays as base64, and the three that JSON lacks as words.
 */

/** @type {Record<string, any>} */
const KINDS = { float32: Float32Array, int32: Int32Array, int8: Int8Array };

/**
 * Return the typed array of `{"shape": ..., "float32": "..."}`, or null.
 *
 * @param {any} packed
 * @returns {Float32Array | Int32Array | Int8Array | null}
 */
export function unpacked(packed) {
  if (!packed) return null;
  for (const [name, kind] of Object.entries(KINDS)) {
    if (typeof packed[name] === "string") return new kind(bytes(packed[name]).buffer);
  }
  return null;
}

/**
 * Return the bytes of base64.
 *
 * @param {string} text
 * @returns {Uint8Array}
 */
export function bytes(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
  return found;
}

/**
 * Return a number of a frame: "inf", "-inf" and "nan" are numbers, too.
 *
 * @param {number | string | null | undefined} value
 * @returns {number}
 */
export function number(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return typeof value === "number" ? value : NaN;
}
