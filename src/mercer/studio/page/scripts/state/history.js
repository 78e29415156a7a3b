/**
 * Undo and redo: the scenes that were, newest last. A stroke of the brush is one step.
 */

const MOST_STEPS = 200; // each holds an array of points that was made anew anyway

/**
 * @template T
 */
export class History {
  constructor() {
    /** @type {T[]} */
    this.before = [];
    /** @type {T[]} */
    this.after = [];
  }

  /**
   * Keep what the scene was, before it changes.
   *
   * @param {T} was
   */
  keep(was) {
    if (this.before.at(-1) === was) return;
    this.before.push(was);
    if (this.before.length > MOST_STEPS) this.before.shift();
    this.after = [];
  }

  /**
   * Return the scene one step back, or null at the first.
   *
   * @param {T} now
   * @returns {T | null}
   */
  undo(now) {
    const was = this.before.pop();
    if (was === undefined) return null;
    this.after.push(now);
    return was;
  }

  /**
   * Return the scene one step on, or null at the newest.
   *
   * @param {T} now
   * @returns {T | null}
   */
  redo(now) {
    const next = this.after.pop();
    if (next === undefined) return null;
    this.before.push(now);
    return next;
  }
}
