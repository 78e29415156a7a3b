/**
 * The proof: the certificate in words and numbers, primal beside dual, the gap as it falls, bounds.
 */

import { lineChart } from "../charts/lines.js";
import { element, refill } from "../common/elements.js";
import { duration, written } from "../common/numbers.js";
import { number } from "../link/arrays.js";
import { asked } from "../state/scene.js";

const FIRST_NUMBERS = 3; // of a long certificate; the others are folded away
const MOST_NUMBERS = 5;
const WAIT = 350; // milliseconds of rest before the steps of a fit are asked for

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installProof(root, studio, link) {
  const head = element("section");
  const steps = element("section", { class: "steps" });
  const bounds = element("section");
  const end = element("section");
  const limit = element("button", { type: "button", id: "infinite", text: "What if C = ∞?", onclick: () =>
    studio.edit({ parameters: { ...studio.scene.parameters, C: "inf" } }) });
  root.append(head, limit, steps, bounds, end);
  let timer = 0;
  /** @type {any} */
  let proven = null;

  const show = () => {
    const { answer, refusal } = studio.value;
    if (refusal) refill(head, element("h2", { text: "Refused" }), element("p", { class: "refusal", text: refusal.words }));
    else if (answer) refill(head, certificate(answer));
    else refill(head, element("p", { text: "Paint some points: the certificate of each fit is shown here." }));
    const c = studio.machine?.parameters.find((/** @type {any} */ p) => p.name === "C");
    limit.hidden = !(c?.infinite && studio.scene.parameters.C !== "inf");
    refill(bounds, answer && !refusal ? boundsOf(answer.bounds ?? []) : null);
    refill(end, answer && !refusal ? ending(answer) : null);
  };
  const prove = async () => {
    const { answer, panel, tour } = studio.value;
    if (panel !== "proof" || !answer || tour || studio.value.refusal) return;
    if (!studio.machine?.prove) {
      refill(steps, traceOf(answer.trace ?? []));
      return;
    }
    if (proven === answer.scene) return;
    proven = answer.scene;
    /** @type {any[]} */
    const seen = [];
    const draw = (/** @type {any[]} */ list) => refill(steps, fall(list));
    const frame = await link.ask("prove", { scene: asked(answer.scene, 2) }, (progress) => {
      seen.push(progress.step);
      draw(seen);
    }).done;
    if (frame.kind === "answer") draw(frame.steps);
    else if (frame.kind === "refused") refill(steps, element("p", { class: "help", text: frame.words }));
    else proven = null;
  };
  studio.watch(["answer", "refusal", "panel", "scene"], () => {
    show();
    clearTimeout(timer);
    if (studio.value.settled) timer = window.setTimeout(prove, WAIT);
  });
}

/** @param {any} answer */
function certificate(answer) {
  const { certificate: proof } = answer;
  const numbers = new Map((proof?.numbers ?? []).map((/** @type {[string, any]} */ [name, value]) => [name, number(value)]));
  const twin = numbers.has("primal") && numbers.has("dual");
  const rest = [...numbers].filter(([name]) => !twin || !["primal", "dual"].includes(name));
  const [shown, more] = rest.length > MOST_NUMBERS ? [rest.slice(0, FIRST_NUMBERS), rest.slice(FIRST_NUMBERS)] : [rest, []];
  return [
    proof && element("h2", {}, "Certificate ", element("span", { class: `chip ${proof?.ok ? "good" : "warn"}`, text: proof?.ok ? "holds" : "does not hold" })),
    element("p", { text: proof?.words ?? "" }),
    twin && element("div", { class: "twin" },
      element("div", {}, element("h3", { text: "Primal value" }), element("div", { class: "value", text: written(numbers.get("primal"), 6) })),
      element("div", {}, element("h3", { text: "Dual value (lower bound)" }), element("div", { class: "value", text: written(numbers.get("dual"), 6) }))),
    proof && facts([...shown.map(([name, value]) => [name, written(value)]), ["tolerance", written(number(proof.tol))]]),
    more.length ? element("details", {}, element("summary", { text: "All values" }), facts(more.map(([name, value]) => [name, written(value)]))) : null,
  ];
}

/** @param {any} answer */
function ending(answer) {
  const { certificate: proof, status } = answer;
  return [
    status && element("h2", { text: "Status" }),
    status && element("p", { text: `${status.words}${status.detail ? `: ${status.detail}` : ""}` }),
    status && facts([["solver", status.solver ?? "–"], ["iterations", String(status.iterations ?? "–")], ["time", duration(status.seconds)]]),
    proof || status ? null : element("p", { text: "This estimator has a closed-form solution and no certificate." }),
    (answer.warnings ?? []).map((/** @type {string} */ words) => element("p", { class: "refusal warn", text: words })),
  ];
}

/** @param {any[][]} list */
function facts(list) {
  return element("dl", { class: "facts" }, list.flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]));
}

/** @param {any[]} steps */
function fall(steps) {
  const x = steps.map((step) => step.iterations);
  const line = (/** @type {string} */ key) => steps.map((step) => Math.max(number(step[key]), 0));
  const both = steps.length > 1;
  return [
    element("h2", { text: "Convergence" }),
    both && element("figure", {}, lineChart(
      [{ name: "gap", x, y: line("gap"), kind: "one", dots: steps.length < 30 }, { name: "violation", x, y: line("violation"), kind: "two" }],
      { label: `duality gap from ${written(number(steps[0].gap))} to ${written(number(steps.at(-1).gap))}`, logY: true, nameX: "iterations", height: 160, legend: true })),
    both && element("figure", {}, element("figcaption", { text: "The dual value increases and the primal value decreases, not necessarily at every step; the optimum lies between" }), lineChart(
      [{ name: "primal", x, y: steps.map((s) => number(s.primal)), kind: "two" }, { name: "dual", x, y: steps.map((s) => number(s.dual)), kind: "one" }],
      { label: "primal and dual values", nameX: "iterations", height: 150, legend: true })),
    both ? null : element("p", { class: "help", text: "Solved in one step: no convergence curve." }),
  ];
}

/** @param {any[][]} trace */
function traceOf(trace) {
  if (trace.length < 2) return null;
  const measure = trace.map((entry) => number(entry[2]));
  return [element("h2", { text: "Convergence" }), element("figure", {}, lineChart(
    [{ name: "measure", x: trace.map((entry) => entry[0]), y: measure, kind: "one" }],
    { label: `measure of the solver, from ${written(measure[0])} to ${written(measure.at(-1))}`, logY: measure.every((v) => v > 0), nameX: "iterations", height: 150 }))];
}

/** @param {any[]} bounds */
function boundsOf(bounds) {
  if (!bounds.length) return null;
  return [element("h2", { text: "Generalization bounds" }), element("ul", { class: "says" }, bounds.map((bound) =>
    element("li", {}, bound.words, bound.assumes ? element("span", { class: "help", text: ` Assumes: ${bound.assumes}` }) : null)))];
}
