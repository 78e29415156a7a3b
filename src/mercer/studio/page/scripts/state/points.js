/**
 * Points of the plane, as values: each edit returns a new array, so that undo can keep the old one.
 */

/**
 * @typedef {object} Point
 * @property {number} x
 * @property {number} y
 * @property {number} value class 0, 1, ... (-1 without a label) or target; 0 where neither is asked for
 */

export const MOST_POINTS = 2000;
export const UNLABELLED = -1;

const DIGITS = 4; // after the point: finer than a screen shows, and short in the address of a scene

/**
 * Return a coordinate as addresses write it: a scene that is shared is the same to the last digit.
 *
 * @param {number} value
 */
export function rounded(value) {
  return Number(value.toFixed(DIGITS));
}

/**
 * @param {readonly Point[]} points
 * @param {readonly Point[]} more
 * @returns {readonly Point[]}
 */
export function added(points, more) {
  const room = more.slice(0, Math.max(0, MOST_POINTS - points.length));
  return [...points, ...room.map((p) => ({ ...p, x: rounded(p.x), y: rounded(p.y) }))];
}

/**
 * @param {readonly Point[]} points
 * @param {number} place
 * @param {Partial<Point>} change
 * @returns {readonly Point[]}
 */
export function changed(points, place, change) {
  const moved = { ...points[place], ...change };
  const kept = { ...moved, x: rounded(moved.x), y: rounded(moved.y) };
  return points.map((point, i) => (i === place ? kept : point));
}

/**
 * @param {readonly Point[]} points
 * @param {Set<number>} places
 * @returns {readonly Point[]}
 */
export function without(points, places) {
  return places.size ? points.filter((_, i) => !places.has(i)) : points;
}

/**
 * Return the place of the nearest point no farther than `reach`, or -1.
 *
 * @param {readonly Point[]} points
 * @param {number} x
 * @param {number} y
 * @param {[number, number]} reach in units of x and of y
 */
export function nearest(points, x, y, reach) {
  let best = 1;
  let place = -1;
  points.forEach((point, i) => {
    const distance = ((point.x - x) / reach[0]) ** 2 + ((point.y - y) / reach[1]) ** 2;
    if (distance <= best) [best, place] = [distance, i];
  });
  return place;
}

/**
 * Return the places of all points within `reach`.
 *
 * @param {readonly Point[]} points
 * @param {number} x
 * @param {number} y
 * @param {[number, number]} reach
 * @returns {Set<number>}
 */
export function near(points, x, y, reach) {
  const found = new Set();
  points.forEach((point, i) => {
    const distance = ((point.x - x) / reach[0]) ** 2 + ((point.y - y) / reach[1]) ** 2;
    if (distance <= 1) found.add(i);
  });
  return found;
}

/**
 * Return the distinct classes, in order, without "unlabelled".
 *
 * @param {readonly Point[]} points
 * @returns {number[]}
 */
export function classes(points) {
  const found = new Set(points.map((point) => point.value));
  found.delete(UNLABELLED);
  return [...found].sort((a, b) => a - b);
}
