/**
 * Icons: paths of 24 x 24, drawn with the colour of the text beside them.
 */

import { drawing } from "./elements.js";

const PATHS = {
  brush: "M4 20c3 0 5-1.5 5-4a2.5 2.5 0 0 0-5 0c0 2-.5 3-2 4h2zM9.5 13.5 19 4l1.5 1.5L11 15",
  move: "M12 3v18M3 12h18M12 3l-2.5 2.5M12 3l2.5 2.5M12 21l-2.5-2.5M12 21l2.5-2.5M3 12l2.5-2.5M3 12l2.5 2.5M21 12l-2.5-2.5M21 12l-2.5 2.5",
  erase: "M8 20h12M5 15.5 14.5 6a1.5 1.5 0 0 1 2 0l3.5 3.5a1.5 1.5 0 0 1 0 2L11.5 20H9l-4-4z",
  undo: "M9 7 4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  redo: "M15 7l5 5-5 5M20 12H10a6 6 0 0 0-6 6",
  clear: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  share: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  play: "M7 4.5v15l12-7.5z",
  pause: "M8 5v14M16 5v14",
  step: "M6 5v14l9-7zM18 5v14",
  back: "M18 5v14l-9-7zM6 5v14",
  rewind: "M19 5v14l-7-7zM12 5v14l-7-7z",
  stop: "M6 6h12v12H6z",
  close: "M6 6l12 12M18 6 6 18",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18v.1",
};

/**
 * @param {keyof typeof PATHS} name
 * @returns {SVGElement}
 */
export function icon(name) {
  return drawing(
    "svg",
    { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", focusable: "false" },
    drawing("path", { d: PATHS[name] }),
  );
}
