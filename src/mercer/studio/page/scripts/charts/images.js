/**
 * Matrices as images: one pixel for each entry, enlarged without smoothing.
 */

import { element } from "../common/elements.js";
import { mixed, paper, rgb, sequential } from "../common/palette.js";

const BELOW = rgb("#2166AC"); // negative blue, positive red, as the library's notebooks show them
const ABOVE = rgb("#B2182B");

/**
 * Draw a matrix of numbers: zero is paper, positive red, negative blue.
 *
 * @param {readonly number[]} values row after row
 * @param {number} side
 * @param {string} label
 * @returns {HTMLCanvasElement}
 */
export function matrixImage(values, side, label) {
  const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-300);
  const blank = rgb(paper());
  const colour = (/** @type {number} */ v) =>
    mixed(blank, v < 0 ? BELOW : ABOVE, Math.abs(v) / most);
  return image(values, side, side, colour, label);
}

/**
 * Draw a table of numbers from low (dark) to high (light); what is not known yet is left blank.
 *
 * @param {readonly (number | null)[]} values row after row
 * @param {number} columns
 * @param {number} rows
 * @param {string} label
 * @returns {HTMLCanvasElement}
 */
export function heatImage(values, columns, rows, label) {
  const known = /** @type {number[]} */ (values.filter((v) => v !== null));
  const low = Math.min(...known);
  const span = Math.max(...known) - low || 1;
  return image(values, columns, rows, (v) => sequential((v - low) / span), label);
}

/**
 * @param {readonly (number | null)[]} values
 * @param {number} columns
 * @param {number} rows
 * @param {(value: number) => [number, number, number]} colour
 * @param {string} label
 */
function image(values, columns, rows, colour, label) {
  const canvas = /** @type {HTMLCanvasElement} */ (
    element("canvas", { width: columns, height: rows, class: "pixels", role: "img", "aria-label": label })
  );
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = context.createImageData(columns, rows);
  values.forEach((value, i) => {
    if (value === null || Number.isNaN(value)) return;
    pixels.data.set([...colour(value).map(Math.round), 255], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}
