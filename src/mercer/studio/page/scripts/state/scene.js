/**
 * A scene: all that an answer follows from. As the page holds it, and as the server is asked about it.
 */

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
 * @property {Bounds} bounds
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

/**
 * Return a scene as the server reads it.
 *
 * @param {Scene} scene
 * @param {number} [steps] of the grid along each side
 * @returns {Record<string, any>}
 */
export function asked(scene, steps = 200) {
  /** @type {Record<string, any>} */
  const view = { bounds: scene.bounds, nx: steps, ny: steps };
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
  const points = (plain.points ?? []).map((/** @type {number[]} */ [x, y, value = 0]) => ({ x, y, value }));
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
