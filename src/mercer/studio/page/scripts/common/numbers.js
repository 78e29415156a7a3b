/**
 * Numbers as people read them.
 */

/**
 * Write a number with a few digits: 0.25, 1,200, 3.1e-9.
 *
 * @param {number | null | undefined} value
 * @param {number} [digits]
 * @returns {string}
 */
export function written(value, digits = 3) {
  if (typeof value !== "number" || Number.isNaN(value)) return "–";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return exponential(value, digits);
  const text = Number(value.toPrecision(digits)).toString();
  return text.replace("-", "−");
}

/**
 * @param {number} value
 * @param {number} digits
 */
function exponential(value, digits) {
  const [front, power] = value.toExponential(Math.max(0, digits - 2)).split("e");
  return `${Number(front)}e${Number(power)}`.replaceAll("-", "−");
}

/**
 * Write seconds: 12 ms, 1.4 s.
 *
 * @param {number | null | undefined} seconds
 */
export function duration(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.001) return "under 1 ms";
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toPrecision(2)} s`;
}

/**
 * Write a count with its noun: "1 point", "12 points".
 *
 * @param {number} count
 * @param {string} noun
 * @param {string} [plural]
 */
export function counted(count, noun, plural = `${noun}s`) {
  return `${count} ${count === 1 ? noun : plural}`;
}

/**
 * Return a number within bounds.
 *
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function within(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/**
 * Return round places for the marks of an axis, about `count` of them.
 *
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @returns {number[]}
 */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) ?? power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}
