/**
 * What the plane shows of a table: two columns with the others held, or a plane through all of them.
 */

import { element } from "../common/elements.js";
import { fieldOf } from "./fields.js";

const KINDS = {
  columns: "two columns",
  components: "principal components",
  discriminant: "discriminant plane",
  correlation: "correlation plane",
};

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 */
export function viewFields(studio, table) {
  const shown = studio.scene.plane ?? { kind: "components" };
  const plane = shown.kind === "columns" ? { ...firstTwo(studio, table), ...shown } : shown;
  const kinds = Object.keys(KINDS).filter((kind) => allowed(kind, studio.scene));
  const kind = choice("view", "View", kinds, KINDS, plane.kind, (value) => {
    const next = value === "columns" ? { kind: value, ...firstTwo(studio, table) } : { kind: value };
    studio.edit({ plane: next, bounds: null });
  });
  if (plane.kind !== "columns") return [kind];
  const names = numeric(studio, table);
  const set = (/** @type {any} */ change) => studio.edit({ plane: { ...plane, ...change }, bounds: null });
  const pick = (/** @type {"x" | "y"} */ axis, /** @type {string} */ label) =>
    choice(`view-${axis}`, label, names.map((c) => c.name), null, plane[axis], (value) => set({ [axis]: value }));
  return [kind, element("div", { class: "pair" }, pick("x", "across"), pick("y", "up")), slices(studio, names, plane)];
}

/**
 * @param {string} kind
 * @param {import("../state/scene.js").Scene} scene
 */
function allowed(kind, scene) {
  if (kind === "discriminant") return scene.task === "classes";
  return kind !== "correlation" || scene.task === "targets";
}

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 * @returns {any[]}
 */
function numeric(studio, table) {
  const used = studio.scene.table?.columns;
  return table.columns.filter((/** @type {any} */ c) => c.kind === "number" && c.usable
    && c.name !== studio.scene.table?.target && (!used || used.includes(c.name)));
}

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 */
function firstTwo(studio, table) {
  const [x, y] = numeric(studio, table).map((column) => column.name);
  return { x, y: y ?? x };
}

/**
 * Sliders of the columns that are held while two are shown.
 *
 * @param {import("../state/studio.js").Studio} studio
 * @param {any[]} names
 * @param {any} plane
 */
function slices(studio, names, plane) {
  const held = names.filter((column) => column.name !== plane.x && column.name !== plane.y);
  if (!held.length) return null;
  return element("details", {}, element("summary", { text: "Values of the other columns" }), held.map((column) => {
    const spec = { name: column.name, kind: /** @type {const} */ ("number"), low: column.low, high: column.high, scale: /** @type {const} */ ("linear"), default: (column.low + column.high) / 2 };
    const field = fieldOf(spec, {
      change(value, moving) {
        if (moving) studio.set({ settled: false });
        const now = studio.scene.plane ?? plane;
        studio.edit({ plane: { ...now, others: { ...now.others, [column.name]: value } } }, `slice ${column.name}`);
      },
      end: () => studio.endGesture(),
    });
    field.show(plane.others?.[column.name] ?? spec.default);
    return field.root;
  }));
}

/**
 * @param {string} id
 * @param {string} label
 * @param {string[]} values
 * @param {Record<string, string> | null} words
 * @param {string} value
 * @param {(value: string) => void} chosen
 */
function choice(id, label, values, words, value, chosen) {
  const select = /** @type {HTMLSelectElement} */ (element("select", { id },
    values.map((one) => element("option", { value: one, text: words ? words[one] : one }))));
  select.value = value;
  select.addEventListener("change", () => chosen(select.value));
  return element("div", { class: "field" }, element("label", { for: id, text: label }), select);
}
