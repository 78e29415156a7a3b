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
 * Return pieces x0, y0, x1, y1, ... (in grid steps) of the line where `values` is `level`.
 *
 * @param {ArrayLike<number>} values row after row, lowest row first
 * @param {Grid} grid
 * @param {number} level
 * @returns {number[]}
 */
export function contour(values, grid, level) {
  const { columns, rows } = grid;
  /** @type {number[]} */
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
      for (const side of JOINED[kind]) {
        if (side === 0) pieces.push(i + a / (a - b), j);
        else if (side === 1) pieces.push(i + 1, j + b / (b - c));
        else if (side === 2) pieces.push(i + d / (d - c), j + 1);
        else pieces.push(i, j + a / (a - d));
      }
    }
  }
  return pieces;
}

/**
 * Add pieces to the path of a canvas.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number[]} pieces
 * @param {Grid} grid
 * @param {import("./view.js").View} view
 */
export function trace(context, pieces, grid, view) {
  const [x0, x1, y0, y1] = grid.bounds;
  const dx = (x1 - x0) / (grid.columns - 1);
  const dy = (y1 - y0) / (grid.rows - 1);
  for (let k = 0; k < pieces.length; k += 4) {
    context.moveTo(view.left(x0 + pieces[k] * dx), view.top(y0 + pieces[k + 1] * dy));
    context.lineTo(view.left(x0 + pieces[k + 2] * dx), view.top(y0 + pieces[k + 3] * dy));
  }
}
