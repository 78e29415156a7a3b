/**
 * The kernel: typed as text, composed by blocks, and looked at: matrix, spectrum, slice, features.
 */

import { matrixImage } from "../charts/images.js";
import { lineChart } from "../charts/lines.js";
import { element, refill } from "../common/elements.js";
import { counted, written } from "../common/numbers.js";
import { number, unpacked } from "../link/arrays.js";
import { asked } from "../state/scene.js";
import { installBlocks } from "./blocks.js";
import { fieldOf } from "./fields.js";
import { parameterEdits } from "./machine.js";

const WAIT = 180; // milliseconds after the last letter

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installKernel(root, studio, link) {
  const text = /** @type {HTMLTextAreaElement} */ (element("textarea", {
    id: "kernel-text", rows: 2, spellcheck: "false", autocapitalize: "off", "aria-describedby": "kernel-says kernel-refusal",
  }));
  const says = element("p", { class: "help", id: "kernel-says" });
  const refusal = element("p", { class: "refusal", id: "kernel-refusal", role: "alert" });
  const sliders = element("div");
  const blocks = element("div");
  const views = element("div", { class: "views" });
  const none = element("p", { text: "This estimator has no kernel." });
  const body = element("div", {},
    element("div", { class: "field" }, element("label", { for: "kernel-text", text: "Kernel" }), text, refusal, says),
    sliders, blocks, views);
  root.append(none, body);
  const showBlocks = installBlocks(blocks, studio, (kernel) => edit(kernel));
  let timer = 0;
  let newest = 0;
  let built = "";

  const edit = (/** @type {string | null} */ kernel) => {
    const parameters = Object.fromEntries(
      Object.entries(studio.scene.parameters).filter(([name]) => !name.startsWith("kernel__")));
    studio.edit({ kernel, parameters }, "kernel");
  };
  const current = () => studio.scene.kernel ?? studio.machine?.default_kernel ?? "";

  const look = async (/** @type {string} */ kernel, /** @type {boolean} */ typed) => {
    newest += 1;
    const mine = newest;
    const frame = await link.ask("kernel", { scene: asked({ ...studio.scene, kernel }, 2) }).done;
    if (mine !== newest || frame.kind === "cancelled") return;
    const bad = frame.kind === "refused";
    text.setAttribute("aria-invalid", String(bad));
    refusal.textContent = bad ? frame.words : "";
    if (bad) {
      if (Number.isInteger(frame.position)) says.textContent = pointed(kernel, frame.position);
      return;
    }
    if (typed && kernel !== current()) edit(kernel);
    says.textContent = frame.words;
    showSliders(frame.parameters ?? []);
    showBlocks(frame.tree, kernel);
    refill(views, viewsOf(frame));
  };
  const showSliders = (/** @type {any[]} */ specs) => {
    const key = JSON.stringify([studio.scene.kernel, studio.scene.machine, specs.map((s) => s.name)]);
    if (key !== built) {
      built = key;
      fields = new Map(specs.map((spec) => [spec.name, fieldOf(spec, parameterEdits(studio, spec.name))]));
      refill(sliders, [...fields.values()].map((field) => field.root));
    }
    for (const spec of specs) fields.get(spec.name)?.show(studio.scene.parameters[spec.name] ?? spec.value);
  };
  /** @type {Map<string, import("./fields.js").Field>} */
  let fields = new Map();

  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => look(text.value, true), WAIT);
  });
  text.addEventListener("change", () => studio.endGesture());
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // a kernel is one line
  });
  studio.watch(["scene", "hello", "panel", "answer", "connected"], () => {
    const has = Boolean(studio.machine?.kernel);
    body.hidden = !has;
    none.hidden = has;
    if (!has || studio.value.panel !== "kernel" || !studio.value.connected) return;
    if (document.activeElement !== text) text.value = current();
    clearTimeout(timer);
    timer = window.setTimeout(() => look(document.activeElement === text ? text.value : current(), document.activeElement === text), WAIT);
  });
}

/**
 * @param {string} kernel
 * @param {number} position
 */
function pointed(kernel, position) {
  return `${kernel.slice(Math.max(0, position - 16), position)} ▸ ${kernel.slice(position, position + 16)}`;
}

/** @param {any} frame */
function viewsOf(frame) {
  const matrix = unpacked(frame.matrix);
  const values = (frame.eigenvalues ?? []).map(number);
  const most = Math.max(...values, 0);
  const shown = values.map((/** @type {number} */ v) => (v > most * 1e-16 ? v : null));
  return [
    element("div", { class: "pair" },
      matrix && element("figure", {}, element("figcaption", { text: "Kernel matrix, points sorted" }),
        matrixImage([...matrix], frame.matrix.shape[0], `kernel matrix of ${frame.matrix.shape[0]} points`)),
      frame.slice && element("figure", {}, element("figcaption", { text: frame.slice.words }),
        lineChart([{ name: "k", x: frame.slice.x, y: frame.slice.y, kind: "one" }],
          { label: frame.slice.words, width: 180, height: 150 }))),
    values.length ? element("figure", {}, element("figcaption", { text: `Spectrum: ${counted(frame.rank, "nonzero eigenvalue")}` }),
      lineChart([{ name: "eigenvalues", x: frame.places, y: shown, kind: "one", dots: true }],
        { label: `eigenvalues, from ${written(values[0])} to ${written(values.at(-1))}`, logY: true, height: 130, nameX: "eigenvalue" })) : null,
    frame.features && element("figure", {}, element("figcaption", { text: frame.dimension ? `Feature map: ${counted(frame.dimension, "feature")}` : "Feature map" }),
      element("div", { class: "formula", text: frame.features })),
  ];
}
