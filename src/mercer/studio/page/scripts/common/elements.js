/**
 * Elements of the page, made by name and attributes: no text is ever read as markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | null | undefined | false} Child
 */

/**
 * Make an element. Attributes that begin with "on" are listeners; `text` is its text;
 * a value of `false`, `null` or `undefined` leaves the attribute out.
 *
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[] | Child[][])} children
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(name), attributes, children));
}

/**
 * Make an element of a drawing.
 *
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[] | Child[][])} children
 * @returns {SVGElement}
 */
export function drawing(name, attributes = {}, ...children) {
  return /** @type {SVGElement} */ (
    filled(document.createElementNS(SVG, name), attributes, children)
  );
}

/**
 * @param {Element} made
 * @param {Record<string, any>} attributes
 * @param {(Child | Child[] | Child[][])[]} children
 */
function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === "text") made.textContent = String(value);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(2)) if (child) made.append(child);
  return made;
}

/**
 * Put new children in place of the old ones.
 *
 * @param {Element} parent
 * @param {...(Child | Child[] | Child[][])} children
 */
export function refill(parent, ...children) {
  parent.replaceChildren(
    .../** @type {(Node | string)[]} */ (children.flat(2).filter(Boolean)),
  );
}

/**
 * Return the element of the page with this id.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function named(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}
