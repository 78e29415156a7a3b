/**
 * Fields for parameters: a slider (by powers of ten where the range is wide) with a field for the exact
 * number, a choice, or a switch.
 */

import { element } from "../common/elements.js";
import { number } from "../link/arrays.js";

const NOTCHES = 240; // of a slider; one more for infinity

/**
 * @typedef {object} Parameter
 * @property {string} name
 * @property {"number" | "integer" | "choice" | "switch"} [kind]
 * @property {number} low
 * @property {number} high
 * @property {"log" | "linear"} scale
 * @property {any} default
 * @property {boolean} [infinite]
 * @property {string[]} [choices]
 * @property {string} [words]
 * @property {boolean} [curve]
 *
 * @typedef {object} Field
 * @property {HTMLElement} root
 * @property {(value: any) => void} show
 *
 * @typedef {object} Answers
 * @property {(value: any, moving: boolean) => void} change
 * @property {() => void} end
 */

let made = 0; // for ids that no other field has

/**
 * Make the field of a parameter.
 *
 * @param {Parameter} spec
 * @param {Answers} answers
 * @returns {Field}
 */
export function fieldOf(spec, answers) {
  const makers = { number: slider, integer: slider, choice, switch: toggle };
  return makers[spec.kind ?? "number"](spec, answers);
}

/**
 * Return the name of a parameter as it is read: "scale of part 1" for kernel__k1__scale.
 *
 * @param {string} name
 */
export function readName(name) {
  const parts = name.split("__").filter((part) => part !== "kernel");
  const last = (parts.pop() ?? name).replaceAll("_", " ");
  return parts.length ? `${last} of ${parts.join(" ")}` : last;
}

/**
 * @param {Parameter} spec
 * @param {Answers} answers
 * @returns {Field}
 */
function slider(spec, answers) {
  made += 1;
  const id = `field-${made}`;
  const last = spec.infinite ? NOTCHES + 1 : NOTCHES;
  const range = /** @type {HTMLInputElement} */ (
    element("input", { type: "range", id, min: 0, max: last, step: 1, "data-parameter": spec.name })
  );
  const exact = /** @type {HTMLInputElement} */ (
    element("input", { type: "text", class: "exact", inputmode: "decimal", "aria-label": `${readName(spec.name)}, exact` })
  );
  const show = (/** @type {any} */ value) => {
    const shown = number(value);
    range.value = String(shown === Infinity ? last : notch(spec, shown));
    range.setAttribute("aria-valuetext", text(shown));
    if (document.activeElement !== exact) exact.value = text(shown);
  };
  range.addEventListener("input", () => {
    const at = Number(range.value);
    const value = at > NOTCHES ? "inf" : valueAt(spec, at);
    show(value);
    answers.change(value, true);
  });
  range.addEventListener("change", answers.end);
  exact.addEventListener("change", () => {
    const typed = exact.value.trim().replace("−", "-").replace("∞", "inf");
    const value = /^inf(inity)?$/i.test(typed) ? "inf" : Number(typed);
    const sound = typed !== "" && (value === "inf" || Number.isFinite(value));
    exact.setAttribute("aria-invalid", String(!sound));
    if (!sound) return;
    answers.change(value, false);
    answers.end();
  });
  const root = element(
    "div",
    { class: "field" },
    element("div", { class: "label" }, element("label", { for: id, text: readName(spec.name) }), exact),
    range,
    spec.words ? element("p", { class: "help", text: spec.words }) : null,
  );
  return { root, show };
}

/**
 * @param {Parameter} spec
 * @param {number} value
 */
function notch(spec, value) {
  const share =
    spec.scale === "log"
      ? Math.log(Math.max(value, spec.low) / spec.low) / Math.log(spec.high / spec.low)
      : (value - spec.low) / (spec.high - spec.low);
  return Math.round(NOTCHES * Math.min(1, Math.max(0, share)));
}

/**
 * @param {Parameter} spec
 * @param {number} at
 */
function valueAt(spec, at) {
  const share = at / NOTCHES;
  const value =
    spec.scale === "log" ? spec.low * (spec.high / spec.low) ** share : spec.low + share * (spec.high - spec.low);
  return spec.kind === "integer" ? Math.round(value) : Number(value.toPrecision(3));
}

/** @param {number} value */
function text(value) {
  return value === Infinity ? "∞" : String(Number(value.toPrecision(4)));
}

/**
 * @param {Parameter} spec
 * @param {Answers} answers
 * @returns {Field}
 */
function choice(spec, answers) {
  made += 1;
  const id = `field-${made}`;
  const select = /** @type {HTMLSelectElement} */ (
    element("select", { id, "data-parameter": spec.name },
      (spec.choices ?? []).map((one) => element("option", { value: one, text: one })))
  );
  select.addEventListener("change", () => {
    answers.change(select.value, false);
    answers.end();
  });
  const root = element("div", { class: "field" }, element("label", { for: id, text: readName(spec.name) }), select,
    spec.words ? element("p", { class: "help", text: spec.words }) : null);
  return { root, show: (value) => (select.value = String(value)) };
}

/**
 * @param {Parameter} spec
 * @param {Answers} answers
 * @returns {Field}
 */
function toggle(spec, answers) {
  const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", "data-parameter": spec.name }));
  box.addEventListener("change", () => {
    answers.change(box.checked, false);
    answers.end();
  });
  const root = element("div", { class: "field" }, element("label", { class: "check" }, box, readName(spec.name)),
    spec.words ? element("p", { class: "help", text: spec.words }) : null);
  return { root, show: (value) => (box.checked = Boolean(value)) };
}
