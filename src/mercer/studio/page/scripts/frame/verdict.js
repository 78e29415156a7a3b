/**
 * Under the plane: what the machine says of its answer, in one line; and the voice for screen readers.
 */

import { element, refill } from "../common/elements.js";
import { counted, duration, written } from "../common/numbers.js";

const QUIET = 900; // milliseconds without news before it is read aloud

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} voice a live region
 * @param {import("../state/studio.js").Studio} studio
 * @param {() => void} stop ends the fit under way
 * @returns {(words: string) => void} says something at once
 */
export function installVerdict(root, voice, studio, stop) {
  let timer = 0;
  const aloud = (/** @type {string} */ words) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => (voice.textContent = words), QUIET);
  };
  const show = () => {
    const { answer, refusal, connected, cut, hello, scene, progress } = studio.value;
    if (!connected) {
      refill(root, element("span", { class: "chip warn", text: hello ? "cut off" : "connecting" }),
        element("p", { class: "said", text: hello ? "No connection to the studio; the page keeps trying. Your points are kept." : cut }));
      return;
    }
    if (refusal) {
      refill(root, element("span", { class: "chip bad", text: "refused" }), element("p", { class: "said", text: refusal.words }), element("span"));
      aloud(refusal.words);
      return;
    }
    if (progress) {
      refill(root, element("span", { class: "chip", text: "fitting" }), element("p", { class: "said", text: progress.words ?? "" }),
        element("button", { type: "button", id: "fit-stop", text: "Stop", onclick: stop }));
      return;
    }
    if (!answer || (!scene.table && !scene.points.length)) {
      refill(root);
      return;
    }
    const { certificate, status, score, layers } = answer;
    const good = Boolean(certificate?.ok && status?.ok);
    const support = layers?.support ? counted(layers.support.index.length, "support vector") : "";
    const scored = score ? `${score.name} ${scoreOf(score)}` : "";
    const count = scene.table ? "" : counted(scene.points.length, "point");
    refill(root,
      certificate || status ? element("span", { class: `chip ${good ? "good" : "warn"}`, text: good ? "certified" : (status?.name ?? "not certified").toLowerCase().replaceAll("_", " ") }) : null,
      element("p", { class: "said", text: certificate?.words ?? status?.words ?? "", title: certificate?.words ?? "" }),
      element("p", { class: "time", text: [count, scored, support, answer.seconds === undefined ? "" : duration(answer.seconds)].filter(Boolean).join(" · ") }));
    aloud(`${scored ? `${scored}. ` : ""}${certificate?.words ?? status?.words ?? ""}`);
  };
  studio.watch(["answer", "refusal", "connected", "cut", "hello", "progress"], show);
  studio.watch(["scene"], () => {
    if (!studio.scene.table && !studio.scene.points.length) show();
  });
  show();
  return (words) => {
    clearTimeout(timer);
    voice.textContent = words;
  };
}

/**
 * Write a score: shares of right answers in percent, rounded down, so that 100 % has none wrong.
 *
 * @param {{name: string, value: number}} score
 */
function scoreOf({ name, value }) {
  return name.startsWith("right") ? `${Math.floor(1000 * value + 1e-9) / 10} %` : written(value);
}
