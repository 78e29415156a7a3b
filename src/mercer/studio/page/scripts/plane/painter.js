/**
 * The plane, drawn: the surface of the newest answer, and over it the points as they are now.
 * Two canvases, so that moving points costs no new surface.
 */

import { accent, ink } from "../common/palette.js";
import { drawContours, drawCurve, drawnRows, drawShapes, drawWhy } from "./answer_layers.js";
import { drawAxes } from "./axes.js";
import { drawMarked, drawPoints, drawSupport } from "./points_layer.js";
import { drawSlacks, slackLines } from "./slack_layer.js";
import { surfaceOf } from "./surface.js";
import { View } from "./view.js";
import { HOME, windowOf } from "../state/scene.js";

const KINDS = { classes: "class", targets: "target", regression: "plain", unlabelled: "plain" };

export class Painter {
  /**
   * @param {HTMLElement} plane
   * @param {HTMLCanvasElement} below
   * @param {HTMLCanvasElement} above
   * @param {import("../state/studio.js").Studio} studio
   */
  constructor(plane, below, above, studio) {
    this.plane = plane;
    this.below = below;
    this.above = above;
    this.studio = studio;
    this.shown = { surface: true, contours: true, support: true, slack: true, shapes: true, axes: true };
    /** @type {{answer: any, surface: ReturnType<typeof surfaceOf>, kept: Map<string, number[][]>, rows: any, slacks: any}} */
    this.made = { answer: null, surface: null, kept: new Map(), rows: null, slacks: null };
    this.stale = { below: true, above: true };
    this.frame = 0;
    new ResizeObserver(() => {
      studio.set({ aspect: plane.clientWidth / (plane.clientHeight || 1) || 1 });
      this.redraw();
    }).observe(plane);
    studio.watch(["answer", "scene"], () => this.redraw());
    studio.watch(["selected", "pointer", "why", "marked", "panel", "tool"], () => this.redraw(false));
  }

  /** @returns {View} */
  get view() {
    const { scene, answer, aspect } = this.studio.value;
    const bounds = windowOf(scene, aspect) ?? answer?.surface?.bounds ?? answer?.regions?.bounds ?? answer?.layers?.bounds ?? HOME;
    return new View(bounds, this.plane.clientWidth || 1, this.plane.clientHeight || 1);
  }

  /** @returns {import("./points_layer.js").Drawn} */
  get drawn() {
    const { scene, answer } = this.studio.value;
    if (scene.table) return this.made.rows ?? { x: [], y: [], value: [], kind: "plain", range: [0, 1] };
    const [low, high] = scene.points.reduce(([a, b], p) => [Math.min(a, p.value), Math.max(b, p.value)], [-1, 1]);
    const found = answer?.scene?.points === scene.points ? answer.layers?.points?.label : null;
    const clusters = scene.task === "unlabelled" && answer?.regions && found;
    return {
      x: scene.points.map((p) => p.x),
      y: scene.points.map((p) => p.y),
      value: clusters ? found : scene.points.map((p) => p.value),
      kind: clusters ? "class" : KINDS[scene.task] ?? "plain",
      range: [low, high],
    };
  }

  /**
   * Draw at the next frame of the screen.
   *
   * @param {boolean} [all] the surface, too
   */
  redraw(all = true) {
    this.stale.above = true;
    if (all) this.stale.below = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.#draw());
  }

  /** Forget the colours of the surface: the theme changed. */
  repaint() {
    this.made.answer = null;
    this.redraw();
  }

  #draw() {
    this.frame = 0;
    this.#prepare();
    const view = this.view;
    if (this.stale.below) {
      const context = sized(this.below, view);
      this.drawBelow(context, view);
    }
    const context = sized(this.above, view);
    this.drawAbove(context, view, true);
    this.stale = { below: false, above: false };
  }

  #prepare() {
    const { answer } = this.studio.value;
    if (answer === this.made.answer) return;
    this.made = { answer, surface: surfaceOf(answer), kept: new Map(), rows: drawnRows(answer?.layers), slacks: null };
  }

  /**
   * @param {any} context
   * @param {View} view
   */
  drawBelow(context, view) {
    const { surface, kept } = this.made;
    const { answer } = this.studio.value;
    if (surface && this.shown.surface) {
      const [x0, x1, y0, y1] = surface.grid.bounds;
      // the values lie on grid lines: half a pixel more on each side
      const dx = (x1 - x0) / (surface.grid.columns - 1) / 2;
      const dy = (y1 - y0) / (surface.grid.rows - 1) / 2;
      const [left, top] = [view.left(x0 - dx), view.top(y1 + dy)];
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = "high";
      context.drawImage(surface.image, left, top, view.left(x1 + dx) - left, view.top(y0 - dy) - top);
    }
    if (this.shown.axes) drawAxes(context, view, this.names);
    if (surface && this.shown.contours) drawContours(context, view, surface, kept);
    if (answer?.curve) drawCurve(context, view, answer.curve);
  }

  /**
   * @param {any} context
   * @param {View} view
   * @param {boolean} pointing also what the reader points at
   */
  drawAbove(context, view, pointing) {
    const { scene, answer, selected, marked, why, panel } = this.studio.value;
    const drawn = this.drawn;
    const current = answer && (scene.table || answer.scene?.points === scene.points);
    if (this.shown.shapes && current) drawShapes(context, view, answer.layers, drawn);
    if (this.shown.slack && current) {
      this.made.slacks ??= slackLines(answer, this.made.surface, drawn);
      drawSlacks(context, view, this.made.slacks);
    }
    drawPoints(context, view, drawn);
    if (this.shown.support && current) drawSupport(context, view, drawn, answer.layers?.support);
    if (marked.size) drawMarked(context, view, drawn, marked, accent());
    if (!pointing) return;
    if (selected >= 0) drawMarked(context, view, drawn, [selected], ink());
    if (panel === "why") drawWhy(context, view, why, drawn);
    this.#drawCursor(context, view);
  }

  /** @returns {string[]} */
  get names() {
    const { scene, answer } = this.studio.value;
    if (scene.table) return answer?.layers?.axes ?? [];
    return scene.task === "regression" ? ["x", "y"] : ["x₁", "x₂"];
  }

  /**
   * @param {any} context
   * @param {View} view
   */
  #drawCursor(context, view) {
    const { pointer, tool } = this.studio.value;
    if (!pointer?.keyboard) {
      if (pointer && tool === "erase") ring(context, view.left(pointer.x), view.top(pointer.y), ERASER);
      return;
    }
    const [x, y] = [view.left(pointer.x), view.top(pointer.y)];
    context.save();
    context.strokeStyle = accent();
    context.lineWidth = 2;
    context.beginPath();
    for (const [a, b] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 5 * a, y + 5 * b);
      context.lineTo(x + 16 * a, y + 16 * b);
    }
    context.stroke();
    context.restore();
  }
}

export const ERASER = 16; // pixels around the pointer

/**
 * @param {any} context
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
function ring(context, x, y, r) {
  context.save();
  context.strokeStyle = ink();
  context.globalAlpha = 0.7;
  context.beginPath();
  context.arc(x, y, r, 0, 2 * Math.PI);
  context.stroke();
  context.restore();
}

/**
 * Fit a canvas to the plane and the screen's pixels, and wipe it.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 */
function sized(canvas, view) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  return context;
}
