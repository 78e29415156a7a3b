/**
 * What the lines of the plane mean; each entry takes its layer away and brings it back.
 */

import { drawing, element, refill } from "../common/elements.js";

/**
 * @typedef {object} Entry
 * @property {"surface" | "contours" | "support" | "slack" | "shapes"} layer
 * @property {string} words
 * @property {string} [line] its look, a path of 26 x 14
 * @property {string} [dash]
 * @property {(answer: any) => boolean} has
 */

const RING = (/** @type {number} */ x, r = 4.5) => `M${x + r} 7a${r} ${r} 0 1 0 ${-2 * r} 0a${r} ${r} 0 1 0 ${2 * r} 0`;
const zone = (/** @type {string} */ name) => (/** @type {any} */ answer) =>
  answer.layers?.support?.zone?.includes(name) && answer.surface?.meaning === "decision";
const beyond = (/** @type {any} */ answer) =>
  answer.surface?.meaning === "decision" && answer.layers?.support?.slack?.some((/** @type {number} */ v) => v > 1);

const LEVELLED = ["density", "value", "component", "distance"]; // surfaces without a border

/** @type {Entry[]} */
const ENTRIES = [
  { layer: "surface", words: "surface", has: (a) => Boolean(a.surface || a.regions) },
  { layer: "contours", words: "border", line: "M1 7h24", has: (a) => Boolean(a.surface?.levels?.length) && !LEVELLED.includes(a.surface.meaning) },
  { layer: "contours", words: "levels", line: "M1 7h24", has: (a) => LEVELLED.includes(a.surface?.meaning) && a.surface.levels?.length },
  { layer: "contours", words: "margin", line: "M1 7h24", dash: "5 3.5", has: (a) => a.surface?.meaning === "decision" && a.surface.levels?.length > 1 },
  { layer: "support", words: "on the margin", line: RING(13), has: zone("on") },
  { layer: "support", words: "inside it", line: RING(13), dash: "2.5 2", has: zone("inside") },
  { layer: "support", words: "beyond the boundary", line: RING(13, 3) + RING(13, 6), has: beyond },
  { layer: "support", words: "support vectors", line: RING(13), has: (a) => Boolean(a.layers?.support?.index?.length) && a.surface?.meaning !== "decision" },
  { layer: "slack", words: "slack", line: "M5 7h16", has: (a) => Boolean(a.layers?.points?.slack?.some((/** @type {number} */ v) => v > 0.02)) },
  { layer: "shapes", words: "means", line: "M9 3l8 8M17 3l-8 8", has: (a) => Boolean(a.layers?.means?.length) },
  { layer: "shapes", words: "one and two deviations", line: RING(13, 6), has: (a) => Boolean(a.layers?.ellipses?.length) },
  { layer: "shapes", words: "directions", line: "M3 7h20M18 3l5 4-5 4", has: (a) => Boolean(a.layers?.directions?.length) },
  { layer: "shapes", words: "graph", line: "M3 11L13 3L23 11", has: (a) => Boolean(a.layers?.edges?.length) },
];

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../plane/painter.js").Painter} painter
 */
export function installLegend(root, studio, painter) {
  let last = "";
  const show = () => {
    const { answer, scene } = studio.value;
    const empty = !scene.table && !scene.points.length;
    const entries = answer && !empty ? ENTRIES.filter((entry) => entry.has(answer)) : [];
    const key = entries.map((entry) => `${entry.words} ${painter.shown[entry.layer]}`).join();
    if (key === last) return;
    last = key;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.layer;
    refill(root, entries.map((entry) => element("button", {
      type: "button", "data-layer": entry.words, "aria-pressed": String(painter.shown[entry.layer]),
      onclick: () => {
        painter.shown[entry.layer] = !painter.shown[entry.layer];
        painter.redraw();
        show();
      },
    }, entry.line ? drawing("svg", { viewBox: "0 0 26 14", "aria-hidden": "true" }, drawing("path", { d: entry.line, "stroke-dasharray": entry.dash })) : null, entry.words)));
    if (focused) /** @type {HTMLElement | null} */ (root.querySelector(`[data-layer="${focused}"]`))?.focus();
  };
  studio.watch(["answer", "scene"], show);
}
