/**
 * Over the plane: what is painted, with what, and where to begin.
 */

import { drawing, element, refill } from "../common/elements.js";
import { icon } from "../common/icons.js";
import { classColour, classShape, css, sequential } from "../common/palette.js";
import { sceneOf } from "../state/scene.js";
import { UNLABELLED } from "../state/points.js";
import { swatchPath } from "./swatches.js";

const TOOLS = [
  ["paint", "brush", "Paint points (drag one to move it)"],
  ["move", "move", "Move points and the plane"],
  ["erase", "erase", "Erase points"],
  ["ask", "help", "Ask why here"],
];
const CLASSES = 4; // brushes offered at first; more as they are used
const MOST_CLASSES = 8;
const TARGETS = [-1, -0.5, 0, 0.5, 1];

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installToolbar(root, studio, link) {
  const task = /** @type {HTMLSelectElement} */ (element("select", { id: "task", "aria-label": "Task" }));
  const preset = /** @type {HTMLSelectElement} */ (element("select", { id: "preset", class: "short", "aria-label": "Start from an example" }));
  const tools = element("div", { class: "group", role: "group", "aria-label": "Tools" });
  const brushes = element("div", { class: "group brushes", role: "group", "aria-label": "Brush" });
  const clear = element("button", { type: "button", class: "plain square", "aria-label": "Clear all points", title: "Clear all points", onclick: () => {
    if (studio.scene.table) return;
    studio.edit({ points: [] });
  } }, icon("clear"));
  root.append(element("div", { class: "group start" }, task, preset, clear), tools, brushes);

  task.addEventListener("change", () => {
    const machine = studio.value.hello.machines.find((/** @type {any} */ m) => m.tasks.includes(task.value)).name;
    const points = studio.scene.points.map((p) => ({ ...p, value: task.value === "classes" ? Math.max(0, Math.min(MOST_CLASSES - 1, Math.round(p.value))) : p.value }));
    studio.set({ brush: 0 });
    studio.edit({ task: task.value, machine, parameters: {}, kernel: null, points, table: null, plane: null, bounds: studio.scene.bounds ?? [-1.5, 1.5, -1.5, 1.5] });
  });
  preset.addEventListener("change", async () => {
    const name = preset.value;
    preset.value = "";
    if (!name) return;
    await takePreset(studio, link, name);
  });

  const build = () => {
    const { hello } = studio.value;
    if (!hello) return;
    refill(task, hello.tasks.map((/** @type {any} */ t) => element("option", { value: t.name, text: t.words })));
    const groups = hello.tasks.map((/** @type {any} */ t) => element("optgroup", { label: t.words },
      hello.presets.filter((/** @type {any} */ p) => p.task === t.name).map((/** @type {any} */ p) => element("option", { value: p.name, text: p.title }))));
    refill(preset, element("option", { value: "", text: "Examples …" }), groups.filter((/** @type {any} */ g) => g.children.length));
    show();
  };
  const show = () => {
    const { scene, tool, brush, tour } = studio.value;
    task.value = scene.task;
    const fixed = Boolean(scene.table || tour);
    const offered = TOOLS.filter(([name]) => !fixed || name === "move" || name === "ask");
    refill(tools, offered.map(([name, picture, label]) => element("button", {
      type: "button", class: "square", "data-tool": name, "aria-pressed": String(tool === name), "aria-label": label, title: label,
      onclick: () => {
        studio.set({ tool: /** @type {any} */ (name), ...(name === "ask" ? { panel: "why" } : {}) });
        focusAgain(tools, `[data-tool=${name}]`);
      },
    }, icon(/** @type {any} */ (picture)))));
    brushes.hidden = fixed || !["classes", "targets"].includes(scene.task);
    clear.hidden = fixed;
    refill(brushes, brushesOf(studio).map(({ value, label, look }) => element("button", {
      type: "button", class: "square", "data-brush": value, "aria-pressed": String(brush === value), "aria-label": label, title: label,
      onclick: () => {
        studio.set({ brush: value, tool: "paint" });
        focusAgain(brushes, `[data-brush="${value}"]`);
      },
    }, look)));
  };
  studio.watch(["hello"], build);
  let last = "";
  const changed = () => {
    const { scene, tool, brush, tour } = studio.value;
    const most = scene.task === "classes" ? scene.points.reduce((m, p) => Math.max(m, p.value), 0) : 0;
    const key = [scene.task, tool, brush, Boolean(scene.table), Boolean(tour), most, document.documentElement.dataset.theme].join();
    if (key !== last) show();
    last = key;
  };
  studio.watch(["scene", "tool", "brush", "tour"], changed);
  return { redraw: show };
}

/**
 * Put an example in place of the scene; at the first, without a step of undo.
 *
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 * @param {string} name
 * @param {boolean} [first]
 */
export async function takePreset(studio, link, name, first = false) {
  const frame = await link.ask("preset", { name }).done;
  if (frame.kind !== "answer") return;
  studio.set({ tour: null, brush: 0, selected: -1, marked: new Set() });
  if (first) studio.begin(sceneOf(frame.scene));
  else studio.edit(sceneOf(frame.scene));
}

/**
 * Keep the keyboard where it was when buttons are made anew.
 *
 * @param {HTMLElement} parent
 * @param {string} selector
 */
function focusAgain(parent, selector) {
  /** @type {HTMLElement | null} */ (parent.querySelector(selector))?.focus();
}

/** @param {import("../state/studio.js").Studio} studio */
function brushesOf(studio) {
  const { scene } = studio.value;
  if (scene.task === "targets") {
    return TARGETS.map((value) => ({ value, label: `Target ${value}`, look: swatch("circle", css(sequential((value + 1) / 2))) }));
  }
  if (scene.task !== "classes") return [];
  const used = scene.points.reduce((most, p) => Math.max(most, p.value), 0);
  const count = Math.min(MOST_CLASSES, Math.max(CLASSES, used + 2));
  const brushes = Array.from({ length: count }, (_, i) => ({ value: i, label: `Class ${i + 1}`, look: swatch(classShape(i), classColour(i)) }));
  return [...brushes, { value: UNLABELLED, label: "Without a label", look: swatch("circle", "none") }];
}

/**
 * @param {string} shape
 * @param {string} colour
 */
function swatch(shape, colour) {
  return drawing("svg", { viewBox: "-12 -12 24 24", class: "swatch", "aria-hidden": "true" },
    drawing("path", { d: swatchPath(shape, 8), fill: colour, stroke: colour === "none" ? "currentColor" : "none", "stroke-width": 2 }));
}
