/**
 * Tune: the grid of two parameters as a heat map that fills as the scores come.
 */

import { element, refill } from "../common/elements.js";
import { css, sequential } from "../common/palette.js";
import { written } from "../common/numbers.js";
import { number } from "../link/arrays.js";
import { asked } from "../state/scene.js";
import { readName } from "./fields.js";

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installTune(root, studio, link) {
  const start = /** @type {HTMLButtonElement} */ (element("button", { class: "main", type: "button", id: "tune", text: "Tune" }));
  const stop = element("button", { type: "button", id: "tune-stop", text: "Stop", hidden: true });
  const says = element("p", { class: "help", role: "status", id: "tune-says" });
  const map = element("div", { class: "heat" });
  root.append(element("h2", { text: "Tune" }), element("div", { class: "row" }, start, stop), says, map);
  /** @type {{cancel: () => void} | null} */
  let running = null;

  const take = (/** @type {Record<string, any>} */ parameters) =>
    studio.edit({ parameters: { ...studio.scene.parameters, ...parameters } });

  start.addEventListener("click", async () => {
    const grid = new HeatMap(map, take);
    start.disabled = true;
    stop.hidden = false;
    says.textContent = "Scoring the grid …";
    const request = link.ask("tune", { scene: asked(studio.scene) }, (frame) => {
      if (frame.rows) grid.begin(frame.rows, frame.columns);
      if (frame.cell) {
        grid.fill(frame.cell, frame.score);
        says.textContent = `${frame.done} of ${frame.of} scored`;
      }
    });
    running = request;
    const frame = await request.done;
    if (running === request) running = null;
    start.disabled = false;
    stop.hidden = true;
    if (frame.kind === "answer") {
      grid.begin(frame.rows, frame.columns);
      frame.score.forEach((/** @type {any[]} */ row, /** @type {number} */ i) =>
        row.forEach((score, j) => grid.fill([i, j], score)));
      grid.best(frame.best.cell);
      take(frame.best.parameters);
      const found = Object.entries(frame.best.parameters).map(([name, v]) => `${readName(name)} ${written(number(/** @type {any} */ (v)))}`);
      says.textContent = `Best ${frame.how} ${frame.name} ${written(frame.best.score)} at ${found.join(", ")}. Choose a cell to use its values.`;
    } else says.textContent = frame.kind === "refused" ? frame.words : "Stopped.";
  });
  stop.addEventListener("click", () => running?.cancel());
  studio.watch(["scene"], () => {
    const tunes = (studio.machine?.tune ?? []).length > 0;
    root.hidden = !tunes;
  });
}

class HeatMap {
  /**
   * @param {HTMLElement} root
   * @param {(parameters: Record<string, any>) => void} take
   */
  constructor(root, take) {
    this.root = root;
    this.take = take;
    /** @type {(number | null)[][]} */
    this.scores = [];
    /** @type {HTMLElement[][]} */
    this.cells = [];
    refill(root);
  }

  /**
   * @param {any} rows
   * @param {any} columns null where one parameter is tuned
   */
  begin(rows, columns) {
    if (this.cells.length) return;
    const across = columns?.values ?? [0];
    this.rows = rows;
    this.columns = columns;
    this.scores = rows.values.map(() => across.map(() => null));
    this.cells = rows.values.map((/** @type {any} */ v, /** @type {number} */ i) =>
      across.map((/** @type {any} */ w, /** @type {number} */ j) => this.#cell(i, j)));
    const body = element("div", { class: "cells", role: "group", "aria-label": "Scores of the grid" },
      this.cells.toReversed().flat());
    body.style.gridTemplateColumns = `repeat(${across.length}, 1fr)`;
    const ends = (/** @type {any[]} */ values) => [written(number(values[0]), 2), written(number(values.at(-1)), 2)];
    const [low, high] = ends(rows.values);
    const up = element("div", { class: "ends up" }, element("span", { text: high }),
      element("span", { text: readName(rows.name) }), element("span", { text: low }));
    const side = columns && element("div", { class: "ends" }, element("span", { text: ends(columns.values)[0] }),
      element("span", { text: readName(columns.name) }), element("span", { text: ends(columns.values)[1] }));
    refill(this.root, up, body, element("span"), side);
  }

  /**
   * @param {number} i
   * @param {number} j
   */
  #cell(i, j) {
    const values = { [this.rows.name]: this.rows.values[i], ...(this.columns ? { [this.columns.name]: this.columns.values[j] } : {}) };
    const words = Object.entries(values).map(([name, v]) => `${readName(name)} ${written(number(v))}`).join(", ");
    return element("button", { type: "button", "data-words": words, "aria-label": `${words}: not scored yet`, onclick: () => this.take(values) });
  }

  /**
   * @param {[number, number]} cell
   * @param {number | null} score
   */
  fill([i, j], score) {
    this.scores[i][j] = score;
    const known = /** @type {number[]} */ (this.scores.flat().filter((v) => v !== null));
    const low = Math.min(...known);
    const span = Math.max(...known) - low || 1;
    this.cells.forEach((row, a) => row.forEach((button, b) => {
      const value = this.scores[a][b];
      if (value === null) return;
      button.style.background = css(sequential((value - low) / span));
    }));
    const button = this.cells[i][j];
    const text = `${button.dataset.words}: ${score === null ? "no score" : written(score)}`;
    button.setAttribute("aria-label", text);
    button.title = text;
  }

  /** @param {[number, number]} cell */
  best([i, j]) {
    this.cells[i][j].classList.add("best");
  }
}
