/**
 * Borders between regions finer than the grid: between places of different classes the border lies
 * where their confidences are equal, as marching squares place a contour.
 */

const FINER = 3; // steps for one of the grid

/**
 * @typedef {object} Labelled
 * @property {ArrayLike<number>} values confidence at each place
 * @property {ArrayLike<number>} regions class at each place
 * @property {number} columns
 * @property {number} rows
 */

/**
 * Return the same on a finer grid.
 *
 * @param {Labelled} grid
 * @returns {Labelled}
 */
export function finer({ values, regions, columns, rows }) {
  const [wide, high] = [(columns - 1) * FINER + 1, (rows - 1) * FINER + 1];
  const confidence = new Float32Array(wide * high);
  const labels = new Int8Array(wide * high);
  const corner = new Int32Array(4);
  const weight = new Float64Array(4);
  for (let j = 0; j < high; j += 1) {
    const row = Math.min(Math.floor(j / FINER), rows - 2);
    const b = j / FINER - row;
    for (let i = 0; i < wide; i += 1) {
      const column = Math.min(Math.floor(i / FINER), columns - 2);
      const a = i / FINER - column;
      const at = row * columns + column;
      corner.set([at, at + 1, at + columns, at + columns + 1]);
      weight[0] = (1 - a) * (1 - b);
      weight[1] = a * (1 - b);
      weight[2] = (1 - a) * b;
      weight[3] = a * b;
      const to = j * wide + i;
      const first = regions[corner[0]];
      if (first === regions[corner[1]] && first === regions[corner[2]] && first === regions[corner[3]]) {
        let sum = 0;
        for (let k = 0; k < 4; k += 1) sum += weight[k] * values[corner[k]];
        confidence[to] = sum;
        labels[to] = first;
      } else {
        [labels[to], confidence[to]] = winner(values, regions, corner, weight);
      }
    }
  }
  return { values: confidence, regions: labels, columns: wide, rows: high };
}

/**
 * Return the class that the corners of a cell speak for most, and how much.
 *
 * @param {ArrayLike<number>} values
 * @param {ArrayLike<number>} regions
 * @param {Int32Array} corner
 * @param {Float64Array} weight
 * @returns {[number, number]}
 */
function winner(values, regions, corner, weight) {
  let best = -Infinity;
  let label = 0;
  for (let k = 0; k < 4; k += 1) {
    let sum = 0;
    for (let m = 0; m < 4; m += 1) {
      const said = weight[m] * Math.max(values[corner[m]], 0);
      sum += regions[corner[m]] === regions[corner[k]] ? said : -said;
    }
    if (sum > best) [best, label] = [sum, regions[corner[k]]];
  }
  return [label, Math.max(best, 0)];
}
