/**
 * Where a point of the plane is on the screen: a window of the plane, stretched over the canvas.
 */

/** @typedef {[number, number, number, number]} Bounds x0, x1, y0, y1 */

export class View {
  /**
   * @param {Bounds} bounds
   * @param {number} width in CSS pixels
   * @param {number} height
   */
  constructor(bounds, width, height) {
    this.bounds = bounds;
    this.width = width;
    this.height = height;
  }

  /** @param {number} x */
  left(x) {
    return ((x - this.bounds[0]) / (this.bounds[1] - this.bounds[0])) * this.width;
  }

  /** @param {number} y */
  top(y) {
    return ((this.bounds[3] - y) / (this.bounds[3] - this.bounds[2])) * this.height;
  }

  /** @param {number} left */
  x(left) {
    return this.bounds[0] + (left / this.width) * (this.bounds[1] - this.bounds[0]);
  }

  /** @param {number} top */
  y(top) {
    return this.bounds[3] - (top / this.height) * (this.bounds[3] - this.bounds[2]);
  }

  /**
   * Return a length of pixels in units of x and of y.
   *
   * @param {number} pixels
   * @returns {[number, number]}
   */
  reach(pixels) {
    return [
      (pixels / this.width) * (this.bounds[1] - this.bounds[0]),
      (pixels / this.height) * (this.bounds[3] - this.bounds[2]),
    ];
  }
}

/**
 * Return bounds around a place, larger by `factor`, that leave the place where it is.
 *
 * @param {Bounds} bounds
 * @param {number} x
 * @param {number} y
 * @param {number} factor
 * @returns {Bounds}
 */
export function zoomed(bounds, x, y, factor) {
  const [x0, x1, y0, y1] = bounds;
  return [x + (x0 - x) * factor, x + (x1 - x) * factor, y + (y0 - y) * factor, y + (y1 - y) * factor];
}

/**
 * Return bounds that hold all points, with a margin.
 *
 * @param {readonly {x: number, y: number}[]} points
 * @param {Bounds} otherwise when there are no points
 * @returns {Bounds}
 */
export function around(points, otherwise) {
  if (points.length === 0) return otherwise;
  const [x0, x1] = extent(points.map((point) => point.x));
  const [y0, y1] = extent(points.map((point) => point.y));
  return [x0, x1, y0, y1];
}

/**
 * @param {number[]} values
 * @returns {[number, number]}
 */
function extent(values) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const margin = (high - low) * 0.15 || Math.abs(low) * 0.15 || 1;
  return [low - margin, high + margin];
}
