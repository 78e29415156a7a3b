/**
 * The surface under the points: one pixel for each place of the grid, coloured by what it means.
 */

import { unpacked } from "../link/arrays.js";
import { classColour, mixed, paper, rgb, sequential } from "../common/palette.js";
import { theme } from "../common/theme.js";
import { finer } from "./regions.js";

/**
 * @typedef {import("../common/palette.js").Colour} Colour
 *
 * @typedef {object} Surface
 * @property {import("./contours.js").Grid} grid
 * @property {ArrayLike<number>} values
 * @property {string} meaning
 * @property {number[]} levels
 * @property {HTMLCanvasElement} image
 * @property {[number, number]} range
 */

const SPLIT = ["regions", "confidence", "distance"]; // surfaces that change colour at borders of regions
const DEEPEST = { light: 0.42, dark: 0.5 }; // share of a class's colour in paper, far from the border

/**
 * Make the surface of an answer, or null where it has none.
 *
 * @param {any} answer
 * @returns {Surface | null}
 */
export function surfaceOf(answer) {
  const packed = answer?.surface ?? answer?.regions;
  const bounds = answer?.surface?.bounds ?? answer?.regions?.bounds ?? answer?.scene?.bounds;
  if (!packed || !bounds) return null;
  const values = unpacked(answer.surface) ?? unpacked(answer.regions);
  if (!values) return null;
  const [rows, columns] = packed.shape;
  const range = span(values);
  const meaning = answer.surface?.meaning ?? "regions";
  const regions = unpacked(answer.regions);
  const labels = answer.regions?.labels ?? null;
  const flat = answer.surface ? values : new Float32Array(values.length).fill(1);
  const seen =
    regions && SPLIT.includes(meaning)
      ? finer({ values: flat, regions, columns, rows })
      : { values, regions, columns, rows };
  const image = painted(seen.values, seen.regions, labels, seen.columns, seen.rows, meaning, range);
  const levels = answer.surface?.levels ?? [];
  return { grid: { columns, rows, bounds }, values, meaning, levels, image, range };
}

/**
 * @param {ArrayLike<number>} values
 * @param {ArrayLike<number> | null} regions
 * @param {number[] | null} labels
 * @param {number} columns
 * @param {number} rows
 * @param {string} meaning
 * @param {[number, number]} range
 */
function painted(values, regions, labels, columns, rows, meaning, range) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = context.createImageData(columns, rows);
  const colour = colours(meaning, range, labels, regions !== null);
  const steps = colour.table.length - 1;
  for (let j = 0; j < rows; j += 1) {
    for (let i = 0; i < columns; i += 1) {
      const from = j * columns + i;
      const to = 4 * ((rows - 1 - j) * columns + i); // row 0 is the lowest
      const table = regions && colour.regions ? colour.regions[regions[from]] ?? colour.table : colour.table;
      const share = Number.isNaN(values[from]) ? 0 : colour.share(values[from]);
      const entry = table[Math.max(0, Math.min(steps, Math.round(share * steps)))];
      pixels.data[to] = entry[0];
      pixels.data[to + 1] = entry[1];
      pixels.data[to + 2] = entry[2];
      pixels.data[to + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/**
 * Return how values become colours: a table, the place of a value in it (0 to 1), and for several
 * classes a table for each region.
 *
 * @param {string} meaning
 * @param {[number, number]} range
 * @param {number[] | null} labels
 * @param {boolean} regions
 * @returns {{table: Colour[], share: (value: number) => number, regions?: Colour[][]}}
 */
function colours(meaning, range, labels, regions) {
  const blank = rgb(paper());
  const deepest = DEEPEST[theme()];
  const towards = (/** @type {number} */ place, from = 0.12) =>
    ramp((t) => mixed(blank, rgb(classColour(place)), from + (deepest - from) * t));
  const [low, high] = range;
  if (meaning === "decision" || meaning === "probability") {
    const [first, second] = labels && labels.length === 2 ? labels : [0, 1];
    const table = ramp((t) => {
      const size = Math.abs(2 * t - 1);
      return mixed(blank, rgb(classColour(t < 0.5 ? first : second)), deepest * size);
    });
    const most = Math.max(Math.abs(low), Math.abs(high));
    const unit = most < 1 ? most / 2 || 1 : 1; // machines without a margin have units of their own
    const half = meaning === "decision" ? (v) => 0.5 + 0.5 * Math.tanh(v / unit) : (v) => v;
    return { table, share: half };
  }
  if (meaning === "density" || meaning === "novelty" || meaning === "distance") {
    const shown = meaning === "density" ? Math.max(low, high - 12) : low; // e^-12: as good as nothing
    const table = ramp((t) => mixed(blank, rgb(classColour(0)), 0.75 * deepest * 2 * t * t));
    const share = (/** @type {number} */ v) => (v - shown) / (high - shown || 1);
    if (regions && labels) return { table, share, regions: labels.map((label) => towards(label, 0)) };
    return { table: meaning === "distance" ? table.reverse() : table, share };
  }
  if (regions && labels) {
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    const share = meaning === "regions" ? () => 0.5 : (/** @type {number} */ v) => Math.tanh((2 * Math.max(0, v)) / Math.min(most, 2));
    return { table: towards(0), share, regions: labels.map((label) => towards(label)) };
  }
  const table = ramp((t) => mixed(blank, sequential(t), 0.7));
  return { table, share: (v) => (v - low) / (high - low || 1) };
}

/** @param {(share: number) => Colour} colour */
function ramp(colour) {
  return Array.from({ length: 256 }, (_, i) => colour(i / 255));
}

/**
 * @param {ArrayLike<number>} values
 * @returns {[number, number]}
 */
function span(values) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (value < low && value > -1e30) low = value;
    if (value > high && value < 1e30) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
