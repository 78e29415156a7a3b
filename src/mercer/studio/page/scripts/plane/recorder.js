/**
 * A canvas that writes an SVG: the part of a canvas's language that the plane is drawn with.
 */

const KEPT = ["fillStyle", "strokeStyle", "lineWidth", "globalAlpha", "font", "textAlign", "lineCap", "lineJoin", "dash"];
const ANCHORS = { left: "start", center: "middle", right: "end" };

export class Recorder {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    /** @type {string[]} */
    this.parts = [];
    this.path = "";
    /** @type {any[]} */
    this.stack = [];
    this.fillStyle = "#000";
    this.strokeStyle = "#000";
    this.lineWidth = 1;
    this.globalAlpha = 1;
    this.font = "12px sans-serif";
    this.textAlign = "left";
    this.lineCap = "butt";
    this.lineJoin = "miter";
    /** @type {number[]} */
    this.dash = [];
    this.imageSmoothingEnabled = true;
    this.imageSmoothingQuality = "high";
  }

  save() {
    this.stack.push(Object.fromEntries(KEPT.map((key) => [key, this[key]])));
  }

  restore() {
    Object.assign(this, this.stack.pop());
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  beginPath() {
    this.path = "";
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  closePath() {
    this.path += "Z";
  }

  /**
   * Whole circles only: the plane draws no other arc.
   *
   * @param {number} x
   * @param {number} y
   * @param {number} r
   */
  arc(x, y, r) {
    const half = `a${short(r)} ${short(r)} 0 1 0`;
    this.path += `M${short(x + r)} ${short(y)}${half} ${short(-2 * r)} 0${half} ${short(2 * r)} 0`;
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`;
  }

  fill() {
    if (this.path) this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.#opacity()}/>`);
  }

  stroke() {
    if (!this.path) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const look = `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linecap="${this.lineCap}" stroke-linejoin="${this.lineJoin}"`;
    this.parts.push(`<path d="${this.path}" fill="none" ${look}${dash}${this.#opacity()}/>`);
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   */
  fillText(text, x, y) {
    this.#text(text, x, y, `fill="${this.fillStyle}"`);
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   */
  strokeText(text, x, y) {
    this.#text(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`);
  }

  /**
   * @param {HTMLCanvasElement} image
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  drawImage(image, x, y, width, height) {
    const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.parts.push(`<image href="${image.toDataURL("image/png")}" ${place} preserveAspectRatio="none"/>`);
  }

  /**
   * Return the whole drawing.
   *
   * @param {string} paper
   */
  text(paper) {
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><rect width="100%" height="100%" fill="${paper}"/>${this.parts.join("\n")}</svg>\n`;
  }

  #opacity() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {string} look
   */
  #text(text, x, y, look) {
    const [size] = this.font.split(" ");
    const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const anchor = ANCHORS[this.textAlign] ?? "start";
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" font-family="sans-serif" font-size="${size}" text-anchor="${anchor}" ${look}${this.#opacity()}>${escaped}</text>`);
  }
}

/** @param {number} value */
function short(value) {
  return Number(value.toFixed(2));
}
