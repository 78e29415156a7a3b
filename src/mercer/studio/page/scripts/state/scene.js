/**
 * A scene: all that an answer follows from. As the page holds it, and as the server is asked about it.
 */

import { rounded } from "./points.js";

/**
 * @typedef {import("./points.js").Point} Point
 * @typedef {import("../plane/view.js").Bounds} Bounds
 *
 * @typedef {object} TableChoice rows of the reader's own file in place of points
 * @property {string} id
 * @property {string | null} target
 * @property {string[] | null} columns
 *
 * @typedef {object} Scene
 * @property {string} task "classes", "regression", "targets" or "unlabelled"
 * @property {readonly Point[]} points
 * @property {string} machine
 * @property {Record<string, any>} parameters
 * @property {string | null} kernel
 * @property {Bounds | null} bounds null where the server chooses
 * @property {TableChoice | null} table
 * @property {Record<string, any> | null} plane what is shown of a table
 */

/** @type {Bounds} */
export const HOME = [-1.5, 1.5, -1.5, 1.5];

/** @type {Readonly<Scene>} */
export const EMPTY = Object.freeze({
  task: "classes",
  points: [],
  machine: "SVC",
  parameters: {},
  kernel: null,
  bounds: HOME,
  table: null,
  plane: null,
});

const HELD = { classes: 3, targets: 3, regression: 2, unlabelled: 2 }; // numbers for each point

const STRETCHED = 1.05; // shapes that differ less look the same

/**
 * Return the part of the plane that is seen: the scene's bounds, and more of its wider side, so that
 * circles are round. The axes of a regression, and of two columns of a table, have units of their own.
 *
 * @param {Scene} scene
 * @param {number} aspect width of the plane over its height
 * @returns {Bounds | null} null where the server chooses
 */
export function windowOf(scene, aspect) {
  if (!scene.bounds || scene.task === "regression" || scene.table) return scene.bounds;
  const [x0, x1, y0, y1] = scene.bounds;
  const ratio = (aspect * (y1 - y0)) / (x1 - x0);
  if (ratio < STRETCHED && ratio > 1 / STRETCHED) return scene.bounds;
  const more = (/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ by) => {
    const half = ((high - low) / 2) * by;
    return [(low + high) / 2 - half, (low + high) / 2 + half];
  };
  const [a, b] = ratio > 1 ? more(x0, x1, ratio) : [x0, x1];
  const [c, d] = ratio < 1 ? more(y0, y1, 1 / ratio) : [y0, y1];
  return [a, b, c, d];
}

/**
 * Return a scene as the server reads it.
 *
 * @param {Scene} scene
 * @param {number} [steps] of the grid along each side, about
 * @param {number} [aspect] width of the plane over its height
 * @returns {Record<string, any>}
 */
export function asked(scene, steps = 200, aspect = 1) {
  const wider = Math.sqrt(Math.min(4, Math.max(0.25, aspect)));
  const [nx, ny] = [Math.max(2, Math.round(steps * wider)), Math.max(2, Math.round(steps / wider))];
  /** @type {Record<string, any>} */
  const view = { bounds: windowOf(scene, aspect), nx, ny };
  if (scene.table && scene.plane) view.plane = scene.plane;
  return {
    task: scene.task,
    ...(scene.table ? { table: scene.table } : { points: rows(scene) }),
    machine: scene.machine,
    parameters: scene.parameters,
    kernel: scene.kernel,
    view,
  };
}

/**
 * Return the points as rows of numbers, as many as the task holds.
 *
 * @param {Scene} scene
 * @returns {number[][]}
 */
export function rows(scene) {
  const held = HELD[scene.task] ?? 3;
  return scene.points.map((p) => (held === 3 ? [p.x, p.y, p.value] : [p.x, p.y]));
}

/**
 * Return the scene of a server's plain one; what it leaves out is as in `base`.
 *
 * @param {Record<string, any>} plain
 * @param {Scene} [base]
 * @returns {Scene}
 */
export function sceneOf(plain, base = EMPTY) {
  const points = (plain.points ?? []).map((/** @type {number[]} */ [x, y, value = 0]) => ({
    x: rounded(x),
    y: rounded(y),
    value: rounded(value),
  }));
  return {
    task: plain.task ?? base.task,
    points,
    machine: plain.machine ?? base.machine,
    parameters: { ...(plain.parameters ?? {}) },
    kernel: plain.kernel ?? null,
    bounds: plain.view?.bounds ?? (plain.table ? null : HOME),
    table: plain.table ?? null,
    plane: plain.view?.plane ?? null,
  };
}
