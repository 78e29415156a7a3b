/**
 * The line at the top: undo, redo, share, a plane without panels; and the corner of the plane.
 */

import { named } from "../common/elements.js";
import { fragmentOf } from "../state/address.js";
import { HOME } from "../state/scene.js";
import { around } from "../plane/view.js";

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {(words: string) => void} announce
 */
export function installHeader(studio, announce) {
  const [undo, redo] = /** @type {HTMLButtonElement[]} */ ([named("undo"), named("redo")]);
  undo.addEventListener("click", () => studio.undo());
  redo.addEventListener("click", () => studio.redo());
  const show = () => {
    undo.disabled = !studio.history.before.length || Boolean(studio.value.tour);
    redo.disabled = !studio.history.after.length || Boolean(studio.value.tour);
  };
  studio.watch(["scene", "tour"], show);
  show();

  const said = named("shared");
  named("share").addEventListener("click", async () => {
    const address = new URL(location.href);
    address.hash = await fragmentOf(studio.scene);
    history.replaceState(null, "", address.hash);
    const done = await copied(address.href);
    said.textContent = done ? "Link copied; it contains the token of this studio" : "The link is in the address bar";
    announce(said.textContent);
    setTimeout(() => (said.textContent = ""), 2500);
  });
  named("wide").addEventListener("click", () => {
    const wide = document.body.classList.toggle("wide");
    named("wide").setAttribute("aria-pressed", String(wide));
  });
  named("fit-view").addEventListener("click", () => {
    studio.look(studio.scene.table ? null : around(studio.scene.points, HOME));
  });
  named("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment is the scene's
    named("plane").focus();
  });
  const hint = named("hint");
  studio.watch(["scene", "connected"], () => {
    hint.hidden = studio.scene.points.length > 0 || Boolean(studio.scene.table) || !studio.value.connected;
  });
  const note = named("note");
  studio.watch(["answer", "scene"], () => {
    note.textContent = (studio.scene.table && studio.value.answer?.layers?.note) || "";
    note.hidden = !note.textContent;
  });
  studio.watch(["working"], () => named("plane").classList.toggle("working", studio.value.working));
  studio.watch(["tool", "scene", "tour"], () => {
    const moves = studio.value.tool === "move" || Boolean(studio.scene.table || studio.value.tour);
    named("plane").classList.toggle("moves", moves);
  });
  installState(studio);
}

/**
 * Say in the plane's attributes what it shows: how many points, of how many the newest answer is, how
 * many answers came.
 *
 * @param {import("../state/studio.js").Studio} studio
 */
function installState(studio) {
  const { dataset } = named("plane");
  let answers = 0;
  studio.watch(["scene", "working", "refusal"], () => {
    dataset.points = String(studio.scene.points.length);
    dataset.current = String(studio.value.answer?.scene === studio.scene);
    dataset.working = String(studio.value.working);
    dataset.refused = String(studio.value.refusal !== null);
  });
  studio.watch(["answer"], () => {
    answers += 1;
    dataset.current = String(studio.value.answer?.scene === studio.scene);
    dataset.answers = String(answers);
    dataset.fine = String(Boolean(studio.value.answer?.fine));
    dataset.fitted = String(studio.value.answer?.scene.points.length ?? 0);
    dataset.machine = studio.value.answer?.machine ?? "";
  });
}

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or a frame of another site
  }
}
