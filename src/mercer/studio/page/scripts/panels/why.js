/**
 * Why: for the place under the pointer, the points that decide and by how much.
 */

import { barList } from "../charts/bars.js";
import { element, refill } from "../common/elements.js";
import { counted, written } from "../common/numbers.js";
import { classColour } from "../common/palette.js";
import { asked } from "../state/scene.js";

const SHOWN = 12; // terms in the list; the rest is summed

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installWhy(root, studio, link) {
  const body = element("div");
  root.append(body);
  let busy = false;
  /** @type {any} */
  let wanted = null;

  const intro = () => refill(body,
    element("h2", { text: "Explanation of a prediction" }),
    element("p", { text: studio.machine?.why
      ? "Point at a location. This list shows what each term contributes to the prediction, and lines lead to the contributing samples."
      : "Predictions of this estimator cannot be decomposed. Those of a support vector machine can." }));
  const ask = async () => {
    if (busy || !wanted || studio.value.panel !== "why" || !studio.machine?.why || !studio.value.answer) return;
    busy = true;
    const at = [wanted.x, wanted.y];
    wanted = null;
    const frame = await link.ask("why", { scene: asked(studio.scene, 2), at }).done;
    busy = false;
    if (frame.kind === "answer") {
      studio.set({ why: { ...frame, at } });
      refill(body, shown(frame, at, studio));
    } else if (frame.kind === "refused") {
      studio.set({ why: null });
      refill(body, element("p", { class: "refusal", text: frame.words }));
    }
    ask();
  };
  studio.watch(["pointer"], () => {
    if (!studio.value.pointer || !studio.value.settled) return;
    wanted = studio.value.pointer;
    ask();
  });
  studio.watch(["scene", "panel"], () => {
    if (studio.value.panel !== "why") {
      if (studio.value.why) studio.set({ why: null });
      return;
    }
    wanted = studio.value.pointer ?? (studio.value.why && { x: studio.value.why.at[0], y: studio.value.why.at[1] });
    if (!studio.value.why) intro();
    ask();
  });
  studio.watch(["answer"], ask);
}

/**
 * @param {any} frame
 * @param {number[]} at
 * @param {import("../state/studio.js").Studio} studio
 */
function shown(frame, at, studio) {
  const names = studio.value.answer?.layers?.names;
  const named = (/** @type {number} */ i) => names?.[i] ?? String(i + 1);
  const pair = frame.against ?? (frame.sum === null ? null : frame.pair);
  const colour = (/** @type {number} */ value) => (pair ? classColour(pair[value < 0 ? 0 : 1]) : undefined);
  const bars = frame.terms.slice(0, SHOWN).map((/** @type {any} */ term) => ({
    name: term.name ?? `point ${term.index + 1}`,
    value: term.contribution,
    colour: colour(term.contribution),
    onenter: () => studio.set({ marked: new Set(term.name ? [] : [term.index]) }),
  }));
  const left = frame.terms.slice(SHOWN);
  const rest = left.reduce((/** @type {number} */ sum, /** @type {any} */ term) => sum + term.contribution, frame.rest?.sum ?? 0);
  const count = left.length + (frame.rest?.count ?? 0);
  if (count) bars.push({ name: counted(count, "other"), value: rest, rest: true });
  if (frame.intercept) bars.push({ name: "intercept", value: frame.intercept, colour: colour(frame.intercept) });
  const list = barList(bars, frame.title ?? "What each point adds");
  list.addEventListener("pointerleave", () => studio.set({ marked: new Set() }));
  return [
    element("h2", { text: `At ${written(at[0])}, ${written(at[1])}` }),
    element("p", { class: "big" }, written(frame.value, 4),
      frame.label === null || frame.label === undefined || studio.scene.task === "regression" ? null
        : element("span", { class: "chip", text: `class ${named(frame.label)}` })),
    element("p", { text: frame.words }),
    frame.against ? element("p", { class: "help", text: `Deciding pair of classes: ${frame.against.map(named).join(" against ")}` }) : null,
    frame.title ? element("h3", { text: frame.title }) : null,
    list,
    frame.sum === null ? null : element("p", { class: "help", text: `Sum of all terms: ${written(frame.sum, 8)}` }),
  ];
}
