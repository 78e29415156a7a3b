/**
 * The plane as a file: PNG at twice its size on the screen, or SVG.
 */

import { paper } from "../common/palette.js";
import { Recorder } from "./recorder.js";

const SCALE = 2;

/**
 * @param {import("./painter.js").Painter} painter
 * @returns {Promise<Blob>}
 */
export function pngOf(painter) {
  const view = painter.view;
  const canvas = document.createElement("canvas");
  canvas.width = view.width * SCALE;
  canvas.height = view.height * SCALE;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(SCALE, SCALE);
  context.fillStyle = paper();
  context.fillRect(0, 0, view.width, view.height);
  painter.drawBelow(context, view);
  painter.drawAbove(context, view, false);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(/** @type {Blob} */ (blob)), "image/png"));
}

/**
 * @param {import("./painter.js").Painter} painter
 * @returns {Blob}
 */
export function svgOf(painter) {
  const view = painter.view;
  const recorder = new Recorder(view.width, view.height);
  painter.drawBelow(recorder, view);
  painter.drawAbove(recorder, view, false);
  return new Blob([recorder.text(paper())], { type: "image/svg+xml" });
}
