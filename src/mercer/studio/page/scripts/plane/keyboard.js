/**
 * The plane without a mouse: a cursor moved by arrows; points are added, chosen, moved and deleted.
 */

import { added, changed, without } from "../state/points.js";
import { within, written } from "../common/numbers.js";

const STEP = 12; // pixels of an arrow; five times as far with Shift
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * @param {HTMLElement} plane
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("./painter.js").Painter} painter
 * @param {(words: string) => void} announce
 */
export function installKeyboard(plane, studio, painter, announce) {
  const place = () => {
    const { pointer } = studio.value;
    const [x0, x1, y0, y1] = painter.view.bounds;
    return pointer ?? { x: (x0 + x1) / 2, y: (y0 + y1) / 2 };
  };
  const editable = () => !studio.scene.table && !studio.value.tour;

  const move = (/** @type {number[]} */ way, /** @type {boolean} */ far) => {
    const { selected } = studio.value;
    const [dx, dy] = painter.view.reach(far ? STEP * 5 : STEP);
    const from = selected >= 0 ? studio.scene.points[selected] : place();
    const [x0, x1, y0, y1] = painter.view.bounds;
    const x = within(from.x + way[0] * dx, x0, x1);
    const y = within(from.y - way[1] * dy, y0, y1);
    studio.set({ pointer: { x, y, keyboard: true } });
    if (selected >= 0) studio.edit({ points: changed(studio.scene.points, selected, { x, y }) }, `keys ${selected}`);
    announce(`${written(x)}, ${written(y)}`);
  };
  const add = () => {
    if (!editable()) return;
    const { x, y } = place();
    const { brush } = studio.value;
    studio.edit({ points: added(studio.scene.points, [{ x, y, value: brush }]) });
    studio.set({ pointer: { x, y, keyboard: true }, selected: -1 });
    announce(`Point added at ${written(x)}, ${written(y)}; ${studio.scene.points.length} points`);
  };
  const choose = (/** @type {number} */ way) => {
    const count = studio.scene.points.length;
    if (!editable() || !count) return;
    const { selected } = studio.value;
    const next = selected < 0 ? (way > 0 ? 0 : count - 1) : (selected + way + count) % count;
    const point = studio.scene.points[next];
    studio.set({ selected: next, pointer: { x: point.x, y: point.y, keyboard: true } });
    studio.endGesture();
    announce(`Point ${next + 1} of ${count}, value ${point.value}, at ${written(point.x)}, ${written(point.y)}`);
  };
  const remove = () => {
    const { selected } = studio.value;
    if (selected < 0 || !editable()) return;
    studio.edit({ points: without(studio.scene.points, new Set([selected])) });
    studio.set({ selected: -1 });
    announce(`Point ${selected + 1} deleted; ${studio.scene.points.length} points left`);
  };

  /** @type {Record<string, () => void>} */
  const keys = {
    Enter: add,
    " ": add,
    "]": () => choose(1),
    "[": () => choose(-1),
    n: () => choose(1),
    b: () => choose(-1),
    Delete: remove,
    Backspace: remove,
    Escape: () => studio.set({ selected: -1, pointer: null }),
  };

  plane.addEventListener("keydown", (event) => {
    if (event.target !== plane || event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    const digit = /^[0-9]$/.test(event.key) && studio.scene.task === "classes";
    const { selected } = studio.value;
    if (arrow) move(arrow, event.shiftKey);
    else if (digit) {
      const value = Number(event.key) - 1; // 0: without a label
      studio.set({ brush: value });
      if (selected >= 0 && editable()) studio.edit({ points: changed(studio.scene.points, selected, { value }) });
    } else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  plane.addEventListener("focus", () => {
    if (plane.matches(":focus-visible") && !studio.value.pointer) studio.set({ pointer: { ...place(), keyboard: true } });
  });
  plane.addEventListener("blur", () => studio.set({ selected: -1, ...(studio.value.pointer?.keyboard ? { pointer: null } : {}) }));
}

/**
 * Undo and redo from anywhere but a field of text.
 *
 * @param {import("../state/studio.js").Studio} studio
 */
export function installUndo(studio) {
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || studio.value.tour) return;
    if (/** @type {Element} */ (event.target).closest("textarea, input[type=text]")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) studio.undo();
    else if (key === "y" || (key === "z" && event.shiftKey)) studio.redo();
    else return;
    event.preventDefault();
  });
}
