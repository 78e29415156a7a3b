/**
 * Lines of equal value through a grid (marching squares), and their drawing.
 */

/**
 * @typedef {object} Grid
 * @property {number} columns
 * @property {number} rows
 * @property {[number, number, number, number]} bounds x0, x1, y0, y1: the first and last grid lines
 */

// sides of a cell: 0 below, 1 right, 2 above, 3 left; for each of 16 cases the sides that are joined
const JOINED = [
  [], [3, 0], [0, 1], [3, 1], [1, 2], [3, 0, 1, 2], [0, 2], [3, 2],
  [2, 3], [2, 0], [0, 1, 2, 3], [2, 1], [1, 3], [1, 0], [0, 3], [],
];

/**
 * Return the lines where `values` is `level`: each x0, y0, x1, y1, ... in steps of the grid.
 *
 * @param {ArrayLike<number>} values row after row, lowest row first
 * @param {Grid} grid
 * @param {number} level
 * @returns {number[][]}
 */
export function contour(values, grid, level) {
  const { columns, rows } = grid;
  /** @type {Map<number, [number, number]>} where the line crosses a side, by the number of the side */
  const crossings = new Map();
  /** @type {[number, number][]} */
  const pieces = [];
  for (let j = 0; j < rows - 1; j += 1) {
    for (let i = 0; i < columns - 1; i += 1) {
      const at = j * columns + i;
      const a = values[at] - level;
      const b = values[at + 1] - level;
      const c = values[at + columns + 1] - level;
      const d = values[at + columns] - level;
      const kind = (a > 0 ? 1 : 0) | (b > 0 ? 2 : 0) | (c > 0 ? 4 : 0) | (d > 0 ? 8 : 0);
      if (kind === 0 || kind === 15 || Number.isNaN(a + b + c + d)) continue;
      const sides = JOINED[kind].map((side) => {
        if (side === 0) return crossed(crossings, 2 * at, i + a / (a - b), j);
        if (side === 1) return crossed(crossings, 2 * (at + 1) + 1, i + 1, j + b / (b - c));
        if (side === 2) return crossed(crossings, 2 * (at + columns), i + d / (d - c), j + 1);
        return crossed(crossings, 2 * at + 1, i, j + a / (a - d));
      });
      for (let k = 0; k < sides.length; k += 2) pieces.push([sides[k], sides[k + 1]]);
    }
  }
  return joined(pieces, crossings);
}

/**
 * @param {Map<number, [number, number]>} crossings
 * @param {number} side
 * @param {number} x
 * @param {number} y
 */
function crossed(crossings, side, x, y) {
  crossings.set(side, [x, y]);
  return side;
}

/**
 * Join pieces end to end: dashes run on, and a path has few parts.
 *
 * @param {[number, number][]} pieces
 * @param {Map<number, [number, number]>} crossings
 * @returns {number[][]}
 */
function joined(pieces, crossings) {
  /** @type {Map<number, number[]>} */
  const touching = new Map();
  pieces.forEach(([a, b], k) => {
    for (const side of [a, b]) touching.set(side, [...(touching.get(side) ?? []), k]);
  });
  const used = new Uint8Array(pieces.length);
  const walk = (/** @type {number} */ first, /** @type {number} */ from) => {
    const line = [...(crossings.get(from) ?? [])];
    let [k, side] = [first, from];
    while (k >= 0) {
      used[k] = 1;
      side = pieces[k][0] === side ? pieces[k][1] : pieces[k][0];
      line.push(...(crossings.get(side) ?? []));
      k = touching.get(side)?.find((other) => !used[other]) ?? -1;
    }
    return line;
  };
  const lines = [];
  for (const [side, list] of touching) if (list.length === 1 && !used[list[0]]) lines.push(walk(list[0], side));
  pieces.forEach(([a], k) => {
    if (!used[k]) lines.push(walk(k, a)); // closed lines have no end to begin at
  });
  return lines;
}

/**
 * Add lines to the path of a canvas.
 *
 * @param {any} context
 * @param {number[][]} lines
 * @param {Grid} grid
 * @param {import("./view.js").View} view
 */
export function trace(context, lines, grid, view) {
  const [x0, x1, y0, y1] = grid.bounds;
  const dx = (x1 - x0) / (grid.columns - 1);
  const dy = (y1 - y0) / (grid.rows - 1);
  for (const line of lines) {
    for (let k = 0; k < line.length; k += 2) {
      const [left, top] = [view.left(x0 + line[k] * dx), view.top(y0 + line[k + 1] * dy)];
      if (k) context.lineTo(left, top);
      else context.moveTo(left, top);
    }
  }
}
