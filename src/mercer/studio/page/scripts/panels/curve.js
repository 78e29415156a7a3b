/**
 * The score along one parameter, under its slider: leave-one-out or by folds, as the server says.
 */

import { lineChart } from "../charts/lines.js";
import { element, refill } from "../common/elements.js";
import { written } from "../common/numbers.js";
import { number } from "../link/arrays.js";
import { asked } from "../state/scene.js";

const WAIT = 450; // milliseconds of rest before a curve is asked for
const MOST_POINTS = 600; // more are asked for by hand: a curve is dozens of fits

/**
 * @param {import("./fields.js").Parameter} spec
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 * @param {boolean} open at first
 * @returns {{root: HTMLElement, end: () => void}}
 */
export function curveUnder(spec, studio, link, open) {
  const chart = element("div", { class: "under" });
  const says = element("p", { class: "help" });
  const root = /** @type {HTMLDetailsElement} */ (element("details", { class: "curve", open, "data-curve": spec.name },
    element("summary", { text: "Score by parameter value" }), chart, says));
  let asking = 0;
  let known = "";
  /** @type {{x: number[], score: (number | null)[], name: string, how: string, best: number | null}} */
  let found = { x: [], score: [], name: "", how: "", best: null };

  const key = () => {
    const { parameters, ...rest } = studio.scene;
    return JSON.stringify([{ ...rest, bounds: 0 }, { ...parameters, [spec.name]: 0 }]);
  };
  const draw = () => {
    const value = number(studio.scene.parameters[spec.name] ?? spec.default);
    if (!found.x.length) {
      refill(chart);
      return;
    }
    const label = `${found.name} along ${spec.name}, from ${written(found.x[0])} to ${written(found.x.at(-1))}`;
    refill(chart, lineChart([{ name: found.name, x: found.x, y: found.score, kind: "one", dots: true }], {
      label, logX: spec.scale === "log", rangeX: [spec.low, spec.high], mark: value, height: 96, inset: true,
    }));
  };
  const say = (/** @type {any} */ frame) => {
    refill(says, `${frame.how} ${frame.name}: best at ${written(number(frame.best))}. `,
      element("button", { class: "link", type: "button", text: "Use the best value", onclick: () => {
        studio.edit({ parameters: { ...studio.scene.parameters, [spec.name]: frame.best } });
      } }));
  };
  const ask = async () => {
    if (!root.open || !link.ready || studio.value.tour) return;
    if (studio.value.panel !== "machine" || !studio.value.answer || key() === known) return;
    if (studio.scene.points.length > MOST_POINTS) {
      says.textContent = "Too many points to update the curve at every change.";
      return;
    }
    known = key();
    const mine = known;
    const partial = { ...found, x: /** @type {number[]} */ ([]), score: /** @type {(number | null)[]} */ ([]) };
    const frame = await link.ask("curve", { scene: asked(studio.scene), parameter: spec.name }, (step) => {
      partial.x.push(number(step.at));
      partial.score.push(step.score);
      if (partial.x.length > found.x.length) {
        found = { ...partial, name: step.name ?? found.name };
        draw();
      }
    }).done;
    if (mine !== known) return;
    if (frame.kind === "answer") {
      found = { ...frame, x: frame.x.map(number) };
      say(frame);
    } else if (frame.kind === "refused") says.textContent = frame.words;
    else known = "";
    draw();
  };
  const soon = () => {
    clearTimeout(asking);
    draw();
    if (studio.value.settled) asking = window.setTimeout(ask, WAIT);
  };
  root.addEventListener("toggle", () => {
    if (!root.open) return;
    for (const other of root.ownerDocument.querySelectorAll("details.curve[open]")) {
      if (other !== root) other.removeAttribute("open"); // a newer curve ends an older one
    }
    soon();
  });
  const ends = studio.watch(["scene", "answer", "settled", "panel"], soon);
  return { root, end: () => {
    clearTimeout(asking);
    ends();
  } };
}
