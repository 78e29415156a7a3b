/**
 * A small chart of lines over an axis, as a drawing that a screen reader can name.
 */

import { drawing } from "../common/elements.js";
import { Axis, markText } from "./axis.js";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {readonly number[]} x
 * @property {readonly (number | null)[]} y
 * @property {string} kind class of its look: "one", "two", "faint"
 * @property {boolean} [dots]
 *
 * @typedef {object} ChartOptions
 * @property {string} label what it shows, in words
 * @property {boolean} [logX]
 * @property {boolean} [logY]
 * @property {string} [nameX]
 * @property {number} [width]
 * @property {number} [height]
 * @property {number} [mark] a vertical line at this x
 * @property {[number, number]} [rangeX]
 * @property {boolean} [legend]
 * @property {boolean} [inset] as wide as a slider above it: marks of y inside
 */

const LEFT = 40;
const THUMB = 8; // pixels that a slider leaves on either side
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 18;

/**
 * Draw lines.
 *
 * @param {Line[]} lines
 * @param {ChartOptions} options
 * @returns {SVGElement}
 */
export function lineChart(lines, options) {
  const { width = 320, height = 130, logX = false, logY = false } = options;
  const bottom = height - BOTTOM - (options.nameX ? 13 : 0);
  const seenX = options.rangeX ?? lines.flatMap((line) => [...line.x]);
  const seenY = lines.flatMap((line) => line.y.filter((v) => v !== null));
  const left = options.inset ? THUMB : LEFT;
  const across = new Axis(seenX, [left, width - RIGHT], logX);
  const top = options.inset ? TOP + 10 : TOP; // room for the letters over the highest rule
  const up = new Axis(/** @type {number[]} */ (seenY), [bottom, top], logY);
  const legend = options.legend && lines.length > 1;
  return drawing(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": options.label },
    frame(across, up, bottom, width, options),
    options.mark === undefined ? null : marked(across, options.mark, bottom),
    lines.map((line) => path(line, across, up)),
    legend ? names(lines, width) : null,
  );
}

/**
 * @param {Axis} across
 * @param {Axis} up
 * @param {number} bottom
 * @param {number} width
 * @param {ChartOptions} options
 */
function frame(across, up, bottom, width, options) {
  const parts = [];
  const left = across.pixels[0];
  for (const value of up.marks(3)) {
    const y = up.at(value);
    parts.push(drawing("line", { x1: left, x2: width - RIGHT, y1: y, y2: y, class: "rule" }));
    const text = markText(value, up.log);
    parts.push(
      options.inset
        ? drawing("text", { x: left + 1, y: y - 2.5, class: "mark", text })
        : drawing("text", { x: left - 5, y: y + 3.5, class: "mark end", text }),
    );
  }
  for (const value of across.marks(5)) {
    const text = markText(value, across.log);
    parts.push(drawing("text", { x: across.at(value), y: bottom + 13, class: "mark middle", text }));
  }
  parts.push(drawing("line", { x1: left, x2: width - RIGHT, y1: bottom, y2: bottom, class: "axis" }));
  if (options.nameX) {
    const x = (left + width - RIGHT) / 2;
    parts.push(drawing("text", { x, y: bottom + 27, class: "mark middle name", text: options.nameX }));
  }
  return parts;
}

/**
 * @param {Axis} across
 * @param {number} value
 * @param {number} bottom
 */
function marked(across, value, bottom) {
  const x = Math.min(across.pixels[1], Math.max(across.pixels[0], across.at(value)));
  return drawing("line", { x1: x, x2: x, y1: TOP, y2: bottom, class: "here" });
}

/**
 * @param {Line} line
 * @param {Axis} across
 * @param {Axis} up
 */
function path(line, across, up) {
  let d = "";
  let open = false;
  const dots = [];
  line.x.forEach((x, i) => {
    const y = line.y[i];
    if (y === null || !Number.isFinite(y) || (up.log && y <= 0) || (across.log && x <= 0)) {
      open = false;
      return;
    }
    const [left, top] = [across.at(x), up.at(y)];
    d += `${open ? "L" : "M"}${left.toFixed(1)} ${top.toFixed(1)}`;
    open = true;
    if (line.dots) dots.push(drawing("circle", { cx: left, cy: top, r: 2.2, class: `dot ${line.kind}` }));
  });
  return [drawing("path", { d, class: `line ${line.kind}` }), ...dots];
}

/**
 * @param {Line[]} lines
 * @param {number} width
 */
function names(lines, width) {
  return lines.map((line, i) =>
    drawing("text", { x: width - RIGHT - 2, y: TOP + 9 + 13 * i, class: `mark end ${line.kind}`, text: line.name }),
  );
}
