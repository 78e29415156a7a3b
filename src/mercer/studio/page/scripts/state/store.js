/**
 * One value that many parts of the page look at: they subscribe, and are told which keys changed.
 */

/**
 * @template {Record<string, any>} T
 */
export class Store {
  /** @param {T} value */
  constructor(value) {
    /** @type {Readonly<T>} */
    this.value = Object.freeze({ ...value });
    /** @type {Set<(value: Readonly<T>, changed: Set<string>) => void>} */
    this.listeners = new Set();
  }

  /**
   * Take some new values; listeners are called once, with the keys that differ.
   *
   * @param {Partial<T>} change
   */
  set(change) {
    const changed = new Set(
      Object.keys(change).filter((key) => !Object.is(this.value[key], change[key])),
    );
    if (changed.size === 0) return;
    this.value = Object.freeze({ ...this.value, ...change });
    for (const listener of [...this.listeners]) listener(this.value, changed);
  }

  /**
   * Call `listener` when one of `keys` changed.
   *
   * @param {string[]} keys
   * @param {(value: Readonly<T>) => void} listener
   * @returns {() => void} ends the subscription
   */
  watch(keys, listener) {
    const heard = (/** @type {Readonly<T>} */ value, /** @type {Set<string>} */ changed) => {
      if (keys.some((key) => changed.has(key))) listener(value);
    };
    this.listeners.add(heard);
    return () => this.listeners.delete(heard);
  }
}
