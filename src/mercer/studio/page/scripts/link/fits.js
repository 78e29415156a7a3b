/**
 * Fits that follow the scene. One is under way at a time, and the newest scene is next: so a stroke
 * is answered while it is drawn. One that takes long is given up for a newer scene.
 */

import { asked } from "../state/scene.js";

const COARSE = 70; // steps of the grid while something moves
const FINE = 200; // and after
const REST = 140; // milliseconds without a change that end a movement of the wheel or the keyboard
const PATIENCE = 600; // milliseconds that a fit may take before a newer scene takes its place
const FITTED = ["task", "points", "machine", "parameters", "kernel", "bounds", "table", "plane"];

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("./socket.js").Link} link
 */
export function followScene(studio, link) {
  /** @type {{since: number, cancel: () => void} | null} */
  let current = null;
  /** @type {any} */
  let sent = null;
  let fine = false;
  let rest = 0;
  let late = 0;

  const send = (/** @type {number} */ steps) => {
    const { scene, aspect } = studio.value;
    sent = { ...scene, aspect };
    fine = steps === FINE;
    if (!scene.table && scene.points.length === 0) {
      studio.set({ answer: null, refusal: null, working: false });
      return;
    }
    studio.set({ working: true });
    const request = link.ask("fit", { scene: asked(scene, steps, aspect) }, (frame) => {
      if (frame.words) studio.set({ progress: frame }); // others carry steps alone
    });
    const mine = { since: performance.now(), cancel: request.cancel };
    current = mine;
    request.done.then((frame) => {
      if (current === mine) current = null;
      if (frame.kind === "answer") studio.set({ answer: { ...frame, scene, fine: steps === FINE }, refusal: null });
      else if (frame.kind === "refused") studio.set({ refusal: frame });
      else if (frame.why === "time" || frame.why === "ended") studio.set({ refusal: ended(frame.why) });
      if (frame.why === "asked") fine = true; // who stops a fit does not want its finer one
      if (current === null) studio.set({ working: false, progress: null });
      next();
    });
  };

  const next = () => {
    if (!link.ready || studio.value.tour?.answered) return;
    const moved = sent === null || studio.value.aspect !== sent.aspect || FITTED.some((key) => !Object.is(sent[key], studio.scene[key]));
    if (current) {
      clearTimeout(late);
      const left = PATIENCE - (performance.now() - current.since);
      if (moved && left <= 0) send(studio.value.settled ? FINE : COARSE);
      else if (moved) late = window.setTimeout(next, left);
      return;
    }
    const settled = studio.value.settled && rest === 0;
    if (moved) send(settled ? FINE : COARSE);
    else if (settled && !fine) send(FINE);
  };

  const changed = () => {
    clearTimeout(rest);
    rest = window.setTimeout(() => {
      rest = 0;
      next();
    }, REST);
    next();
  };

  studio.watch(["scene", "aspect"], changed);
  studio.watch(["settled", "tour"], next);
  studio.watch(["connected"], () => {
    sent = null;
    if (studio.value.connected) next();
  });
  return {
    cancel: () => current?.cancel(),
    again: () => {
      sent = null;
      next();
    },
  };
}

/** @param {string} why */
function ended(why) {
  const words = {
    time: "The fit ran past its time limit and was ended. Take fewer points, a smaller C, or another kernel.",
    ended: "The process that fits has ended, probably out of memory, and is started again. Take fewer points.",
  };
  return { words: words[why], parameter: null };
}
