/**
 * The mark of a class as a path, for buttons and legends.
 */

import { outline } from "../plane/marks.js";
import { Recorder } from "../plane/recorder.js";

/**
 * @param {string} shape
 * @param {number} radius
 * @returns {string}
 */
export function swatchPath(shape, radius) {
  const recorder = new Recorder(0, 0);
  outline(/** @type {any} */ (recorder), shape, 0, 0, radius);
  return recorder.path;
}
