/**
 * Slacks: from a point to where it would have none. In a regression that is the tube; between classes
 * the margin of its class, found by climbing the decision function as the grid knows it.
 */

import { ink } from "../common/palette.js";
import { placeOf } from "./points_layer.js";

const STEP = 0.6; // of a cell of the grid
const MOST_STEPS = 400;
const LEAST = 0.02; // smaller slacks are shorter than the mark of their point

/**
 * @typedef {import("./surface.js").Surface} Surface
 * @typedef {[number, number][]} Line
 */

/**
 * Return the line of each point that has slack, in the units of the plane.
 *
 * @param {any} answer
 * @param {Surface | null} surface
 * @param {import("./points_layer.js").Drawn} drawn
 * @returns {Line[]}
 */
export function slackLines(answer, surface, drawn) {
  const { slack, value, index } = answer.layers?.points ?? {};
  if (!slack) return [];
  const lines = [];
  for (let k = 0; k < slack.length; k += 1) {
    const i = index ? placeOf(drawn, index[k]) : k;
    if (!(slack[k] > LEAST) || drawn.x[i] === undefined) continue;
    if (answer.curve) {
      const towards = Math.sign((value?.[k] ?? drawn.y[i]) - drawn.y[i]);
      lines.push(/** @type {Line} */ ([[drawn.x[i], drawn.y[i]], [drawn.x[i], drawn.y[i] + towards * slack[k]]]));
    } else if (surface?.meaning === "decision") {
      const sign = drawn.value[i] === (answer.regions?.labels?.[1] ?? 1) ? 1 : -1;
      const line = climbed(surface, drawn.x[i], drawn.y[i], sign);
      if (line) lines.push(line);
    }
  }
  return lines;
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {Line[]} lines
 */
export function drawSlacks(context, view, lines) {
  context.save();
  context.strokeStyle = ink();
  context.globalAlpha = 0.38;
  context.lineWidth = 1.1;
  context.beginPath();
  for (const line of lines) {
    line.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](view.left(x), view.top(y)));
  }
  context.stroke();
  context.restore();
}

/**
 * Return the way of steepest ascent from a point to its margin, or null where it does not get there.
 *
 * @param {Surface} surface
 * @param {number} x
 * @param {number} y
 * @param {number} sign
 * @returns {Line | null}
 */
function climbed(surface, x, y, sign) {
  const { columns, rows, bounds } = surface.grid;
  const [x0, x1, y0, y1] = bounds;
  const [dx, dy] = [(x1 - x0) / (columns - 1), (y1 - y0) / (rows - 1)];
  let [u, v] = [(x - x0) / dx, (y - y0) / dy];
  /** @type {Line} */
  const line = [[x, y]];
  for (let k = 0; k < MOST_STEPS; k += 1) {
    const here = valueAt(surface, u, v);
    if (Number.isNaN(here)) return null;
    if (sign * here >= 1) return line;
    const across = sign * (valueAt(surface, u + 0.5, v) - valueAt(surface, u - 0.5, v));
    const up = sign * (valueAt(surface, u, v + 0.5) - valueAt(surface, u, v - 0.5));
    // steepest in the units of the plane, not of the grid
    const [gx, gy] = [across / dx, up / dy];
    const size = Math.hypot(gx / dx, gy / dy);
    if (!(size > 0)) return null;
    u += (STEP * gx) / dx / size;
    v += (STEP * gy) / dy / size;
    line.push([x0 + u * dx, y0 + v * dy]);
  }
  return null;
}

/**
 * Return the value between four places of the grid; NaN outside.
 *
 * @param {Surface} surface
 * @param {number} u
 * @param {number} v
 */
function valueAt(surface, u, v) {
  const { columns, rows } = surface.grid;
  const [i, j] = [Math.floor(u), Math.floor(v)];
  if (!(i >= 0 && j >= 0 && i < columns - 1 && j < rows - 1)) return NaN;
  const [a, b] = [u - i, v - j];
  const at = j * columns + i;
  const f = surface.values;
  const low = f[at] * (1 - a) + f[at + 1] * a;
  const high = f[at + columns] * (1 - a) + f[at + columns + 1] * a;
  return low * (1 - b) + high * b;
}
