/**
 * An axis of a chart: from values to pixels, with places for its marks; linear or by powers of ten.
 */

import { ticks } from "../common/numbers.js";

export class Axis {
  /**
   * @param {number[]} values that must be seen
   * @param {[number, number]} pixels of the lowest and the highest
   * @param {boolean} log
   */
  constructor(values, pixels, log) {
    this.log = log;
    this.pixels = pixels;
    const seen = values.filter((v) => Number.isFinite(v) && (!log || v > 0)).map((v) => this.inner(v));
    let low = seen.reduce((a, b) => Math.min(a, b), Infinity);
    let high = seen.reduce((a, b) => Math.max(a, b), -Infinity);
    if (!(low <= high)) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    this.low = low;
    this.high = high;
  }

  /** @param {number} value */
  inner(value) {
    return this.log ? Math.log10(value) : value;
  }

  /** @param {number} value */
  at(value) {
    const share = (this.inner(value) - this.low) / (this.high - this.low);
    return this.pixels[0] + share * (this.pixels[1] - this.pixels[0]);
  }

  /**
   * Return the value at a pixel.
   *
   * @param {number} pixel
   */
  value(pixel) {
    const share = (pixel - this.pixels[0]) / (this.pixels[1] - this.pixels[0]);
    const inner = this.low + share * (this.high - this.low);
    return this.log ? 10 ** inner : inner;
  }

  /**
   * Return about `count` places for marks.
   *
   * @param {number} count
   * @returns {number[]}
   */
  marks(count) {
    if (!this.log) return ticks(this.low, this.high, count);
    const step = Math.max(1, Math.ceil((this.high - this.low) / count));
    const first = Math.ceil(this.low / step - 1e-9) * step;
    const found = [];
    for (let power = first; power <= this.high + 1e-9; power += step) found.push(10 ** power);
    return found.length ? found : [10 ** ((this.low + this.high) / 2)];
  }
}

/**
 * Write the mark of an axis: powers of ten as such.
 *
 * @param {number} value
 * @param {boolean} log
 */
export function markText(value, log) {
  const power = Math.log10(value);
  if (log && Math.abs(power - Math.round(power)) < 1e-9 && Math.abs(power) > 2.5) {
    return `10${superscript(Math.round(power))}`;
  }
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** @param {number} power */
function superscript(power) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return [...String(power)].map((c) => (c === "-" ? "⁻" : digits[Number(c)])).join("");
}
