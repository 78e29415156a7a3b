/**
 * Mouse, pen and finger on the plane: paint, move, erase, ask; two fingers or the wheel zoom.
 */

import { added, changed, MOST_POINTS, near, nearest, without } from "../state/points.js";
import { within } from "../common/numbers.js";
import { ERASER } from "./painter.js";
import { zoomed } from "./view.js";

const GRAB = 13; // pixels around a point that take hold of it
const NARROWEST = 1e-6; // parts of the plane, where numbers still tell places apart
const WIDEST = 1e6;
const APART = 15; // pixels between the points of a stroke

/**
 * @param {HTMLElement} plane
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("./painter.js").Painter} painter
 */
export function installPointer(plane, studio, painter) {
  /** @type {Map<number, {left: number, top: number}>} */
  const down = new Map();
  let gesture = "";
  let count = 0;
  let held = -1;
  /** @type {{left: number, top: number} | null} */
  let last = null;
  /** @type {{left: number, top: number, bounds: any} | null} */
  let panned = null;

  const at = (/** @type {PointerEvent | WheelEvent} */ event) => {
    const box = plane.getBoundingClientRect();
    return { left: event.clientX - box.left - plane.clientLeft, top: event.clientY - box.top - plane.clientTop };
  };
  const placed = (/** @type {{left: number, top: number}} */ p) => {
    const view = painter.view;
    return { x: view.x(p.left), y: view.y(p.top) };
  };
  const editable = () => !studio.scene.table && !studio.value.tour;

  const paint = (/** @type {{left: number, top: number}} */ p) => {
    const { x, y } = placed(p);
    if (studio.scene.points.length >= MOST_POINTS) {
      studio.set({ refusal: { words: `${MOST_POINTS} points is the maximum; erase some.`, parameter: null } });
      return;
    }
    studio.edit({ points: added(studio.scene.points, [{ x, y, value: studio.value.brush }]) }, gesture);
    last = p;
  };
  const erase = (/** @type {{left: number, top: number}} */ p) => {
    const { x, y } = placed(p);
    const gone = near(studio.scene.points, x, y, painter.view.reach(ERASER));
    if (gone.size) studio.edit({ points: without(studio.scene.points, gone) }, gesture);
  };
  const grab = (/** @type {{left: number, top: number}} */ p) => {
    const { x, y } = placed(p);
    return nearest(studio.scene.points, x, y, painter.view.reach(GRAB));
  };

  plane.addEventListener("pointerdown", (event) => {
    if (/** @type {Element} */ (event.target).closest("button")) return;
    if (event.button > 0 && event.button !== 1) return;
    const p = at(event);
    try {
      plane.setPointerCapture(event.pointerId);
    } catch {
      // a pointer that is gone already (or made by a program) cannot be captured
    }
    down.set(event.pointerId, p);
    if (down.size > 1) {
      if (gesture && !panned) studio.undo(); // the first finger's point was meant as a zoom
      gesture = "";
      return;
    }
    count += 1;
    gesture = `stroke ${count}`;
    held = -1;
    const { tool } = studio.value;
    const pans = !editable() || event.button === 1 || event.altKey;
    if (tool === "ask" && !pans) {
      studio.set({ pointer: { ...placed(p), asked: true } });
      gesture = "";
      return;
    }
    studio.set({ settled: false, selected: -1 });
    if (!pans && tool !== "erase") held = grab(p);
    if (held >= 0) studio.set({ selected: held });
    else if (pans || tool === "move") panned = { ...p, bounds: painter.view.bounds };
    else if (tool === "erase") erase(p);
    else paint(p);
    plane.classList.toggle("grabs", held >= 0 || panned !== null);
  });

  plane.addEventListener("pointermove", (event) => {
    const p = at(event);
    studio.set({ pointer: placed(p) });
    const before = down.get(event.pointerId);
    if (down.size === 2 && before) {
      pinch(down, event.pointerId, p, studio, painter);
      down.set(event.pointerId, p);
      return;
    }
    if (!gesture || !before) return;
    if (held >= 0) studio.edit({ points: changed(studio.scene.points, held, kept(placed(p), painter)) }, gesture);
    else if (panned) pan(panned, p);
    else if (studio.value.tool === "erase") erase(p);
    else if (last && Math.hypot(p.left - last.left, p.top - last.top) >= APART) paint(p);
  });

  const pan = (/** @type {{left: number, top: number, bounds: any}} */ from, /** @type {{left: number, top: number}} */ p) => {
    const [x0, x1, y0, y1] = from.bounds;
    const [dx, dy] = painter.view.reach(1);
    const [right, lower] = [(p.left - from.left) * dx, (p.top - from.top) * dy];
    studio.look([x0 - right, x1 - right, y0 + lower, y1 + lower]);
  };

  const up = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId) || down.size) return;
    gesture = "";
    held = -1;
    last = null;
    panned = null;
    plane.classList.remove("grabs");
    studio.set({ selected: -1 });
    studio.endGesture();
  };
  plane.addEventListener("pointerup", up);
  plane.addEventListener("pointercancel", up);
  plane.addEventListener("pointerleave", () => {
    if (!down.size && !studio.value.pointer?.keyboard && studio.value.tool !== "ask") studio.set({ pointer: null });
  });
  plane.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x, y } = placed(at(event));
    const factor = Math.exp(within(event.deltaY, -120, 120) * 0.0015);
    const seen = zoomed(painter.view.bounds, x, y, factor);
    const width = seen[1] - seen[0];
    if (width > NARROWEST && width < WIDEST) studio.look(seen);
  }, { passive: false });
}

/**
 * Return a place within what is shown: a point dragged out of sight could not be dragged back.
 *
 * @param {{x: number, y: number}} place
 * @param {import("./painter.js").Painter} painter
 */
function kept(place, painter) {
  const [x0, x1, y0, y1] = painter.view.bounds;
  return { x: within(place.x, x0, x1), y: within(place.y, y0, y1) };
}

/**
 * Zoom by two fingers.
 *
 * @param {Map<number, {left: number, top: number}>} down
 * @param {number} moved
 * @param {{left: number, top: number}} to
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("./painter.js").Painter} painter
 */
function pinch(down, moved, to, studio, painter) {
  const [a, b] = [...down.values()];
  const other = [...down.entries()].find(([id]) => id !== moved)?.[1];
  if (!other) return;
  const before = Math.hypot(a.left - b.left, a.top - b.top);
  const after = Math.hypot(to.left - other.left, to.top - other.top);
  if (before < 1 || after < 1) return;
  const view = painter.view;
  const middle = { x: view.x((to.left + other.left) / 2), y: view.y((to.top + other.top) / 2) };
  studio.look(zoomed(view.bounds, middle.x, middle.y, before / after));
}
