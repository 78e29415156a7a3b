/**
 * The frame of reference: faint lines at round numbers, names of the axes.
 */

import { faint, ink, paper } from "../common/palette.js";
import { ticks } from "../common/numbers.js";

const FONT = "11.5px system-ui, sans-serif";

/**
 * @param {any} context
 * @param {import("./view.js").View} view
 * @param {string[]} names
 */
export function drawAxes(context, view, names) {
  const [x0, x1, y0, y1] = view.bounds;
  context.save();
  context.font = FONT;
  context.lineWidth = 1;
  const label = (/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ y) => {
    context.lineWidth = 3;
    context.strokeStyle = paper();
    context.globalAlpha = 0.8;
    context.strokeText(text, x, y);
    context.globalAlpha = 1;
    context.fillStyle = faint();
    context.fillText(text, x, y);
  };
  context.strokeStyle = ink();
  context.globalAlpha = 0.09;
  const across = ticks(x0, x1, view.width / 110);
  const up = ticks(y0, y1, view.height / 90);
  context.beginPath();
  for (const x of across) {
    context.moveTo(view.left(x), 0);
    context.lineTo(view.left(x), view.height);
  }
  for (const y of up) {
    context.moveTo(0, view.top(y));
    context.lineTo(view.width, view.top(y));
  }
  context.stroke();
  context.globalAlpha = 1;
  context.textAlign = "center";
  for (const x of across) {
    if (view.left(x) > 30 && view.left(x) < view.width - 30) label(text(x), view.left(x), view.height - 6);
  }
  context.textAlign = "left";
  for (const y of up) {
    if (view.top(y) > 14 && view.top(y) < view.height - 26) label(text(y), 6, view.top(y) - 3);
  }
  if (names.length === 2) {
    context.textAlign = "right";
    label(names[0], view.width - 8, view.height - 20);
    context.textAlign = "left";
    label(names[1], 6, 14);
  }
  context.restore();
}

/** @param {number} value */
function text(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}
