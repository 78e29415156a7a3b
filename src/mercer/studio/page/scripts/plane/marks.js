/**
 * Marks of points: a colour and a shape for each class.
 */

/**
 * Add the outline of a mark to a path.
 *
 * @param {CanvasRenderingContext2D | Path2D} path
 * @param {string} shape one of `SHAPES`
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
export function outline(path, shape, x, y, r) {
  OUTLINES[shape](path, x, y, r);
}

/** @type {Record<string, (path: CanvasRenderingContext2D | Path2D, x: number, y: number, r: number) => void>} */
const OUTLINES = {
  circle(path, x, y, r) {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  },
  square(path, x, y, r) {
    const a = r * 0.89;
    path.rect(x - a, y - a, 2 * a, 2 * a);
  },
  triangle: (path, x, y, r) => polygon(path, x, y, star(3, r * 1.25, r * 1.25, -90)),
  diamond: (path, x, y, r) => polygon(path, x, y, star(4, r * 1.25, r * 1.25, -90)),
  down: (path, x, y, r) => polygon(path, x, y, star(3, r * 1.25, r * 1.25, 90)),
  plus: (path, x, y, r) => polygon(path, x, y, plus(r * 1.15, 0)),
  cross: (path, x, y, r) => polygon(path, x, y, plus(r * 1.15, 45)),
  star: (path, x, y, r) => polygon(path, x, y, star(10, r * 1.4, r * 0.6, -90)),
};

/**
 * @param {CanvasRenderingContext2D | Path2D} path
 * @param {number} x
 * @param {number} y
 * @param {number[][]} corners
 */
function polygon(path, x, y, corners) {
  corners.forEach(([a, b], i) => (i ? path.lineTo(x + a, y + b) : path.moveTo(x + a, y + b)));
  path.closePath();
}

/**
 * @param {number} count
 * @param {number} even
 * @param {number} odd
 * @param {number} first degrees
 */
function star(count, even, odd, first) {
  return Array.from({ length: count }, (_, i) => {
    const angle = ((first + (360 * i) / count) * Math.PI) / 180;
    const r = i % 2 ? odd : even;
    return [r * Math.cos(angle), r * Math.sin(angle)];
  });
}

/**
 * @param {number} r
 * @param {number} turn degrees
 */
function plus(r, turn) {
  const a = r * 0.38;
  const corners = [[-a, -r], [a, -r], [a, -a], [r, -a], [r, a], [a, a], [a, r], [-a, r], [-a, a], [-r, a], [-r, -a], [-a, -a]];
  const [c, s] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  return corners.map(([x, y]) => [c * x - s * y, s * x + c * y]);
}
