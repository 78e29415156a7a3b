/**
 * Which machine, and its parameters.
 */

import { element, refill } from "../common/elements.js";
import { curveUnder } from "./curve.js";
import { fieldOf } from "./fields.js";

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installMachine(root, studio, link) {
  const select = /** @type {HTMLSelectElement} */ (element("select", { id: "machine" }));
  const words = element("p", { class: "help", id: "machine-words" });
  const refusal = element("p", { class: "refusal", role: "alert" });
  const fields = element("div", { class: "parameters" });
  root.append(
    element("div", { class: "field" }, element("label", { for: "machine", text: "Estimator" }), select, words),
    refusal,
    fields,
  );
  /** @type {Map<string, import("./fields.js").Field>} */
  let shown = new Map();
  let built = "";
  /** @type {(() => void)[]} */
  let leave = [];

  select.addEventListener("change", () => studio.edit({ machine: select.value, parameters: {}, kernel: null }));

  const rebuild = () => {
    const { hello } = studio.value;
    if (!hello) return;
    const fitting = hello.machines.filter((/** @type {any} */ m) => m.tasks.includes(studio.scene.task));
    refill(select, fitting.map((/** @type {any} */ m) => element("option", { value: m.name, text: m.title })));
    select.value = studio.scene.machine;
    words.textContent = studio.machine?.words ?? "";
    shown = new Map();
    for (const end of leave) end();
    leave = [];
    refill(fields, (studio.machine?.parameters ?? []).map((/** @type {any} */ spec) => one(spec)));
    show();
  };
  const one = (/** @type {any} */ spec) => {
    const field = fieldOf(spec, parameterEdits(studio, spec.name));
    shown.set(spec.name, field);
    if (spec.curve) {
      const first = !leave.length;
      const { root: curve, end } = curveUnder(spec, studio, link, first);
      leave.push(end);
      field.root.append(curve);
    }
    return field.root;
  };
  const show = () => {
    for (const spec of studio.machine?.parameters ?? []) {
      shown.get(spec.name)?.show(studio.scene.parameters[spec.name] ?? spec.default);
    }
  };

  studio.watch(["scene", "hello"], () => {
    const key = `${studio.scene.task} ${studio.scene.machine} ${studio.value.hello !== null}`;
    if (key === built) show();
    else {
      built = key;
      rebuild();
    }
  });
  studio.watch(["refusal"], () => {
    refusal.textContent = studio.value.refusal?.words ?? "";
  });
}

/**
 * Return what a field does with its parameter of the scene: one movement of a slider is one step of undo.
 *
 * @param {import("../state/studio.js").Studio} studio
 * @param {string} name
 * @returns {import("./fields.js").Answers}
 */
export function parameterEdits(studio, name) {
  return {
    change(value, moving) {
      if (moving) studio.set({ settled: false });
      const parameters = { ...studio.scene.parameters, [name]: value };
      studio.edit({ parameters }, moving ? `slider ${name}` : "");
    },
    end: () => studio.endGesture(),
  };
}
