/**
 * Points of the plane with what the machine made of them: support vectors ringed by zone, slacks, labels.
 */

import { classColour, classShape, css, faint, ink, paper, rgb, sequential, mixed } from "../common/palette.js";
import { UNLABELLED } from "../state/points.js";
import { outline } from "./marks.js";

/**
 * @typedef {object} Drawn points as they are drawn, whatever they come from
 * @property {ArrayLike<number>} x
 * @property {ArrayLike<number>} y
 * @property {ArrayLike<number>} value class, target or cluster
 * @property {"class" | "target" | "plain"} kind
 * @property {[number, number]} range of targets
 * @property {Map<number, number>} [places] of rows of a table, by their numbers in the file
 */

/**
 * Return where a row that an answer names is among those that are drawn; -1 if it is not.
 *
 * @param {Drawn} drawn
 * @param {number} row
 */
export function placeOf(drawn, row) {
  return drawn.places ? drawn.places.get(row) ?? -1 : row;
}

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {Drawn} drawn
 */
export function drawPoints(context, view, drawn) {
  const radius = radiusFor(drawn.x.length, view);
  context.save();
  context.lineJoin = "round";
  context.strokeStyle = paper();
  context.lineWidth = radius > 4 ? 1.4 : 0.8;
  for (const [place, group] of groups(drawn)) {
    context.beginPath();
    const shape = drawn.kind === "class" && place !== UNLABELLED ? classShape(place) : "circle";
    for (const i of group) outline(context, shape, view.left(drawn.x[i]), view.top(drawn.y[i]), radius);
    if (drawn.kind === "class" && place === UNLABELLED) {
      context.fillStyle = paper();
      context.fill();
      context.strokeStyle = faint();
      context.stroke();
      context.strokeStyle = paper();
      continue;
    }
    context.fillStyle = colour(drawn, place);
    context.fill();
    if (drawn.kind === "target") context.strokeStyle = ink();
    context.stroke();
  }
  context.restore();
}

/**
 * Return the radius of marks: smaller where there are many.
 *
 * @param {number} count
 * @param {import("./view.js").View} view
 */
export function radiusFor(count, view) {
  const room = Math.min(view.width, view.height) > 500 ? 1 : 0.85;
  return room * (count > 900 ? 3.2 : count > 300 ? 4.4 : 5.8);
}

/**
 * Ring support vectors: full where they lie on the margin, dashed inside it, double beyond the border.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {Drawn} drawn
 * @param {{index: number[], zone: string[], slack?: number[]} | undefined} support
 */
export function drawSupport(context, view, drawn, support) {
  if (!support) return;
  const radius = radiusFor(drawn.x.length, view) + 3.4;
  context.save();
  context.strokeStyle = ink();
  const zoneOf = (/** @type {number} */ k) =>
    drawn.kind === "class" && (support.slack?.[k] ?? 0) > 1 ? "beyond" : support.zone?.[k] ?? "on";
  const rings = (/** @type {(zone: string) => boolean} */ belongs, /** @type {number} */ r) => {
    context.beginPath();
    support.index.forEach((row, k) => {
      const i = placeOf(drawn, row);
      if (!belongs(zoneOf(k)) || drawn.x[i] === undefined) return;
      const [x, y] = [view.left(drawn.x[i]), view.top(drawn.y[i])];
      context.moveTo(x + r, y);
      context.arc(x, y, r, 0, 2 * Math.PI);
    });
    context.stroke();
  };
  context.lineWidth = 1.7;
  rings((zone) => zone === "on" || zone === "outside", radius);
  context.lineWidth = 1.2;
  rings((zone) => zone === "beyond", radius);
  rings((zone) => zone === "beyond", radius + 3);
  context.setLineDash([3, 2.5]);
  rings((zone) => zone === "inside", radius);
  context.restore();
}

/**
 * Circle points that a tour or a panel points out, and the selected one.
 *
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {Drawn} drawn
 * @param {Iterable<number>} places
 * @param {string} look
 */
export function drawMarked(context, view, drawn, places, look) {
  context.save();
  context.strokeStyle = look;
  context.lineWidth = 3;
  context.beginPath();
  for (const row of places) {
    const i = placeOf(drawn, row);
    if (drawn.x[i] === undefined) continue;
    const [x, y] = [view.left(drawn.x[i]), view.top(drawn.y[i])];
    context.moveTo(x + 12, y);
    context.arc(x, y, 12, 0, 2 * Math.PI);
  }
  context.stroke();
  context.restore();
}

/**
 * @param {Drawn} drawn
 * @returns {Map<number, number[]>} places by class, or by step of the scale of targets
 */
function groups(drawn) {
  /** @type {Map<number, number[]>} */
  const found = new Map();
  for (let i = 0; i < drawn.x.length; i += 1) {
    const key = drawn.kind === "plain" ? 0 : drawn.kind === "class" ? drawn.value[i] : step(drawn, drawn.value[i]);
    const group = found.get(key);
    if (group) group.push(i);
    else found.set(key, [i]);
  }
  return found;
}

const STEPS = 24; // of the colours of targets: fewer paths, and no eye tells more

/**
 * @param {Drawn} drawn
 * @param {number} value
 */
function step(drawn, value) {
  const [low, high] = drawn.range;
  return Math.round(((value - low) / (high - low || 1)) * STEPS);
}

/**
 * @param {Drawn} drawn
 * @param {number} place
 */
function colour(drawn, place) {
  if (drawn.kind === "plain") return css(mixed(rgb(ink()), rgb(paper()), 0.25));
  return drawn.kind === "class" ? classColour(place) : css(sequential(place / STEPS));
}
