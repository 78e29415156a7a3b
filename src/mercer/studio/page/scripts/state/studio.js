/**
 * The studio: the scene with its history, what was answered, and what the reader is doing.
 * Panels and plane watch it; whoever changes the scene does it by `edit`.
 */

import { History } from "./history.js";
import { EMPTY } from "./scene.js";
import { Store } from "./store.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 *
 * @typedef {object} Shown
 * @property {Scene} scene
 * @property {any} hello what the server offers
 * @property {boolean} connected
 * @property {string} cut why the server closed the link, in its words
 * @property {any} answer the newest fit
 * @property {{words: string, parameter: string | null} | null} refusal why the newest fit was refused
 * @property {boolean} working a fit is under way
 * @property {any} progress of the fit under way, when it takes long
 * @property {boolean} settled no stroke or slider is being moved
 * @property {"paint" | "move" | "erase" | "ask"} tool
 * @property {number} brush the value of painted points
 * @property {number} selected place of a point, or -1
 * @property {{x: number, y: number, keyboard?: boolean, asked?: boolean} | null} pointer where the reader points
 * @property {any} why the newest answer to "why"
 * @property {string} panel
 * @property {any} table description of the reader's file
 * @property {any} tour the tour that is open, with its frame
 * @property {number} aspect width of the plane over its height
 * @property {Set<number>} marked points that a tour or a panel points out
 */

/** @extends {Store<Shown>} */
export class Studio extends Store {
  constructor() {
    super({
      scene: EMPTY,
      hello: null,
      connected: false,
      cut: "",
      answer: null,
      refusal: null,
      working: false,
      progress: null,
      settled: true,
      tool: "paint",
      brush: 0,
      selected: -1,
      pointer: null,
      why: null,
      panel: "machine",
      table: null,
      tour: null,
      aspect: 1,
      marked: new Set(),
    });
    /** @type {History<Scene>} */
    this.history = new History();
    this.gesture = "";
  }

  /** @returns {Scene} */
  get scene() {
    return this.value.scene;
  }

  /** @returns {any} description of the machine of the scene */
  get machine() {
    return this.value.hello?.machines.find((/** @type {any} */ m) => m.name === this.scene.machine) ?? null;
  }

  /**
   * Change the scene, as one step of undo; edits of one gesture (a stroke, a slider) are one step.
   *
   * @param {Partial<Scene>} change
   * @param {string} [gesture]
   */
  edit(change, gesture = "") {
    if (!gesture || gesture !== this.gesture) this.history.keep(this.scene);
    this.gesture = gesture;
    const fewer = change.points && change.points.length <= this.value.selected;
    this.set({ scene: { ...this.scene, ...change }, ...(fewer ? { selected: -1 } : {}) });
  }

  /** End a gesture: the next edit is a step of its own. */
  endGesture() {
    this.gesture = "";
    this.set({ settled: true });
  }

  /**
   * Show another part of the plane; no step of undo.
   *
   * @param {import("../plane/view.js").Bounds | null} bounds
   */
  look(bounds) {
    this.set({ scene: { ...this.scene, bounds } });
  }

  /**
   * Begin with a scene: nothing is before it.
   *
   * @param {Scene} scene
   */
  begin(scene) {
    this.history = new History();
    this.set({ scene });
  }

  undo() {
    this.#go(this.history.undo(this.scene));
  }

  redo() {
    this.#go(this.history.redo(this.scene));
  }

  /** @param {Scene | null} scene */
  #go(scene) {
    this.gesture = "";
    if (scene) this.set({ scene, selected: -1, brush: scene.task === this.scene.task ? this.value.brush : 0 });
  }
}
