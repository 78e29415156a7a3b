/**
 * Colours of classes: Okabe and Ito, told apart by colour-blind readers; classes differ by shape, too.
 * The same as in the library's pictures.
 */

import { theme } from "./theme.js";

/** @typedef {[number, number, number]} Colour */

const CLASSES = [
  "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C", "#7570B3", "#999933", "#A6761D",
];
// the first two are too dark on dark paper for lines and small marks
const CLASSES_DARK = [
  "#4BA3DB", "#F07F2E", "#20B68C", "#DE9CC0", "#8CCBF0", "#F0B840", "#A6A6A6", "#9A96D0", "#B8B850", "#C89A44",
];
export const SHAPES = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "star"];
const INK = { light: "#1F2328", dark: "#E8E6E3" };
const PAPER = { light: "#FFFFFF", dark: "#17191C" };
const FAINT = { light: "#6B7177", dark: "#9AA0A6" };
const ACCENT = { light: "#3B4CC0", dark: "#9DB0FF" };

// viridis at nine places: its lightness rises evenly, also in print without colour
const VIRIDIS = [
  "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725",
].map(rgb);

/** @param {number} place */
export function classColour(place) {
  const colours = theme() === "dark" ? CLASSES_DARK : CLASSES;
  return colours[((place % colours.length) + colours.length) % colours.length];
}

/** @param {number} place */
export function classShape(place) {
  return SHAPES[((place % SHAPES.length) + SHAPES.length) % SHAPES.length];
}

export const ink = () => INK[theme()];
export const paper = () => PAPER[theme()];
export const faint = () => FAINT[theme()];
export const accent = () => ACCENT[theme()];

/**
 * Return red, green and blue of "#rrggbb".
 *
 * @param {string} text
 * @returns {Colour}
 */
export function rgb(text) {
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * Return a colour between two others.
 *
 * @param {Colour} from
 * @param {Colour} to
 * @param {number} share of `to`, 0 to 1
 * @returns {Colour}
 */
export function mixed(from, to, share) {
  const between = (/** @type {number} */ i) => from[i] + (to[i] - from[i]) * share;
  return [between(0), between(1), between(2)];
}

/**
 * Return viridis at a place from 0 to 1.
 *
 * @param {number} place
 * @returns {Colour}
 */
export function sequential(place) {
  const at = Math.min(1, Math.max(0, place)) * (VIRIDIS.length - 1);
  const low = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return mixed(VIRIDIS[low], VIRIDIS[low + 1], at - low);
}

/** @param {Colour} colour */
export function css(colour) {
  return `rgb(${colour.map(Math.round).join(" ")})`;
}
