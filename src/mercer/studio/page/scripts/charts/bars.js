/**
 * Bars from a common line: to the right above zero, to the left below it.
 */

import { element } from "../common/elements.js";
import { written } from "../common/numbers.js";

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} value
 * @property {boolean} [rest] a sum of others: it does not set the scale
 * @property {string} [colour] of what it speaks for
 * @property {() => void} [onenter] when a reader looks at it
 */

/**
 * Draw bars as a list that reads as text, too.
 *
 * @param {Bar[]} bars
 * @param {string} label
 * @returns {HTMLElement}
 */
export function barList(bars, label) {
  const most = Math.max(...bars.filter((bar) => !bar.rest).map((bar) => Math.abs(bar.value)), 1e-300);
  return element(
    "ul",
    { class: "bars", "aria-label": label },
    bars.map((bar) => {
      const fill = element("span", { class: `fill ${bar.rest ? "rest" : ""} ${bar.value < 0 ? "less" : ""}` });
      fill.style.width = `${Math.min(50, (50 * Math.abs(bar.value)) / most)}%`;
      if (bar.colour && !bar.rest) fill.style.background = bar.colour;
      return element(
        "li",
        { onpointerenter: bar.onenter },
        element("span", { class: "name", text: bar.name }),
        element("span", { class: "track", "aria-hidden": "true" }, fill),
        element("span", { class: "value", text: `${bar.value > 0 ? "+" : ""}${written(bar.value, 2)}` }),
      );
    }),
  );
}
