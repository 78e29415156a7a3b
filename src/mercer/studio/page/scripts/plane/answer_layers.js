/**
 * What the machine found, over the surface: contours, tube, slacks, means, ellipses, directions, edges.
 */

import { unpacked } from "../link/arrays.js";
import { accent, classColour, faint, ink, paper } from "../common/palette.js";
import { contour, trace } from "./contours.js";
import { outline } from "./marks.js";
import { placeOf } from "./points_layer.js";

const ARROW = 11; // pixels

/**
 * Draw contours: the border full and heavy, margins dashed, levels of a density fine.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {import("./surface.js").Surface} surface
 * @param {Map<string, number[][]>} kept lines found before, by level
 */
export function drawContours(context, view, surface, kept) {
  const { meaning, levels } = surface;
  context.save();
  context.strokeStyle = ink();
  context.lineCap = "round";
  for (const level of levels) {
    const key = String(level);
    const pieces = kept.get(key) ?? contour(surface.values, surface.grid, level);
    kept.set(key, pieces);
    const border = BORDERS[meaning] === level;
    context.lineWidth = border ? 2.4 : meaning === "decision" ? 1.4 : 1;
    context.globalAlpha = border || meaning === "decision" ? 0.9 : 0.45;
    context.setLineDash(!border && meaning === "decision" ? [6, 5] : []);
    context.beginPath();
    trace(context, pieces, surface.grid, view);
    context.stroke();
  }
  context.restore();
}

/** @type {Record<string, number>} */
const BORDERS = { decision: 0, probability: 0.5, novelty: 0, confidence: 0 };

/**
 * Draw the curve of a regression with its band.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {any} curve
 */
export function drawCurve(context, view, curve) {
  if (!curve) return;
  context.save();
  if (curve.low && curve.high) {
    context.beginPath();
    curve.x.forEach((/** @type {number} */ x, /** @type {number} */ i) =>
      context[i ? "lineTo" : "moveTo"](view.left(x), view.top(curve.high[i])));
    for (let i = curve.x.length - 1; i >= 0; i -= 1) context.lineTo(view.left(curve.x[i]), view.top(curve.low[i]));
    context.closePath();
    context.globalAlpha = 0.16;
    context.fillStyle = classColour(0);
    context.fill();
    context.globalAlpha = 0.8;
    context.setLineDash([6, 5]);
    line(context, view, curve.x, curve.low, 1.2, classColour(0));
    line(context, view, curve.x, curve.high, 1.2, classColour(0));
    context.setLineDash([]);
  }
  context.globalAlpha = 0.5;
  for (const draw of curve.more ?? []) line(context, view, curve.more_x ?? curve.x, draw, 1, faint());
  context.globalAlpha = 1;
  line(context, view, curve.x, curve.y, 2.6, classColour(0));
  context.restore();
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {number[]} x
 * @param {number[]} y
 * @param {number} width
 * @param {string} colour
 */
function line(context, view, x, y, width, colour) {
  context.beginPath();
  let open = false;
  x.forEach((value, i) => {
    if (!Number.isFinite(y[i])) {
      open = false;
      return;
    }
    context[open ? "lineTo" : "moveTo"](view.left(value), view.top(y[i]));
    open = true;
  });
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
}

/**
 * Draw the shapes of an answer: edges of a graph, ellipses, means, directions.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {any} layers
 * @param {import("./points_layer.js").Drawn} drawn
 */
export function drawShapes(context, view, layers, drawn) {
  if (!layers) return;
  context.save();
  drawEdges(context, view, layers.edges ?? [], drawn);
  for (const [i, one] of (layers.ellipses ?? []).entries()) drawEllipse(context, view, one, classColour(i));
  for (const one of layers.directions ?? []) drawArrow(context, view, one.from, one.to);
  if (layers.rectangle) drawRectangle(context, view, layers.rectangle);
  context.lineWidth = 2;
  for (const [x, y, label] of layers.means ?? []) {
    context.beginPath();
    outline(context, "cross", view.left(x), view.top(y), 9);
    context.fillStyle = classColour(label ?? 0);
    context.strokeStyle = ink();
    context.fill();
    context.stroke();
  }
  context.restore();
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {[number, number, number, number]} corners x0, y0, x1, y1
 */
function drawRectangle(context, view, [x0, y0, x1, y1]) {
  context.beginPath();
  context.rect(view.left(x0), view.top(y1), view.left(x1) - view.left(x0), view.top(y0) - view.top(y1));
  context.lineWidth = 2.4;
  context.strokeStyle = ink();
  context.stroke();
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {[number, number][]} edges
 * @param {import("./points_layer.js").Drawn} drawn
 */
function drawEdges(context, view, edges, drawn) {
  context.beginPath();
  for (const [i, j] of edges) {
    context.moveTo(view.left(drawn.x[i]), view.top(drawn.y[i]));
    context.lineTo(view.left(drawn.x[j]), view.top(drawn.y[j]));
  }
  context.globalAlpha = 0.22;
  context.lineWidth = 1;
  context.strokeStyle = ink();
  context.stroke();
  context.globalAlpha = 1;
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {{mean: number[], axes: number[][]}} one
 * @param {string} colour
 */
function drawEllipse(context, view, one, colour) {
  const [[a, b], [c, d]] = one.axes;
  for (const size of [1, 2]) {
    context.beginPath();
    for (let k = 0; k <= 72; k += 1) {
      const angle = (2 * Math.PI * k) / 72;
      const [cos, sin] = [size * Math.cos(angle), size * Math.sin(angle)];
      const x = view.left(one.mean[0] + cos * a + sin * c);
      const y = view.top(one.mean[1] + cos * b + sin * d);
      context[k ? "lineTo" : "moveTo"](x, y);
    }
    context.closePath();
    context.lineWidth = size === 1 ? 2.2 : 1.2;
    context.strokeStyle = colour;
    context.stroke();
  }
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {number[]} from
 * @param {number[]} to
 */
export function drawArrow(context, view, from, to) {
  const [x0, y0, x1, y1] = [view.left(from[0]), view.top(from[1]), view.left(to[0]), view.top(to[1])];
  const angle = Math.atan2(y1 - y0, x1 - x0);
  const draw = (/** @type {string} */ colour, /** @type {number} */ width) => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    for (const turn of [2.6, -2.6]) {
      context.moveTo(x1, y1);
      context.lineTo(x1 + ARROW * Math.cos(angle + turn), y1 + ARROW * Math.sin(angle + turn));
    }
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  };
  draw(paper(), 5);
  draw(ink(), 2.4);
}

/**
 * Draw what decides at a place: lines to the points that speak, as wide as they speak loud.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {any} why
 * @param {import("./points_layer.js").Drawn} drawn
 */
export function drawWhy(context, view, why, drawn) {
  if (!why?.at || !why.terms) return;
  const [less, more] = why.against ?? why.pair ?? [0, 1];
  const most = why.terms[0] ? Math.abs(why.terms[0].contribution) : 1;
  context.save();
  for (const term of why.terms.slice(0, 12)) {
    const i = placeOf(drawn, term.index);
    if (drawn.x[i] === undefined) continue;
    context.beginPath();
    context.moveTo(view.left(why.at[0]), view.top(why.at[1]));
    context.lineTo(view.left(drawn.x[i]), view.top(drawn.y[i]));
    context.lineWidth = 0.6 + (5 * Math.abs(term.contribution)) / (most || 1);
    const votes = why.sum === null && drawn.kind === "class"; // neighbours speak for their own class
    context.strokeStyle = classColour(votes ? drawn.value[i] : term.contribution < 0 ? less : more);
    context.globalAlpha = 0.75;
    context.stroke();
  }
  context.globalAlpha = 1;
  context.beginPath();
  outline(context, "plus", view.left(why.at[0]), view.top(why.at[1]), 10);
  context.fillStyle = accent();
  context.strokeStyle = paper();
  context.lineWidth = 1.5;
  context.fill();
  context.stroke();
  context.restore();
}

/**
 * Return where the rows of a table lie, as points to draw.
 *
 * @param {any} layers
 * @returns {import("./points_layer.js").Drawn | null}
 */
export function drawnRows(layers) {
  const rows = unpacked(layers?.rows);
  if (!rows) return null;
  const count = rows.length / 2;
  const label = unpacked(layers.label);
  const target = unpacked(layers.target);
  const value = label ?? target ?? new Float32Array(count);
  let [low, high] = [Infinity, -Infinity];
  for (const v of target ?? []) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return {
    x: Float32Array.from({ length: count }, (_, i) => rows[2 * i]),
    y: Float32Array.from({ length: count }, (_, i) => rows[2 * i + 1]),
    value,
    kind: label ? "class" : target ? "target" : "plain",
    range: [low, high],
    places: new Map(Array.from(unpacked(layers.index) ?? [], (row, i) => [row, i])),
  };
}
