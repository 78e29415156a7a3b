/**
 * A kernel composed by blocks: a sum of products of kernels. What has another form stays text.
 */

import { element, refill } from "../common/elements.js";

/**
 * @typedef {{name: string, parameters: Record<string, any>, parts?: Tree[], text?: string}} Tree
 */

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {(kernel: string) => void} edit
 * @returns {(tree: Tree | null, text: string) => void} shows the blocks of a kernel
 */
export function installBlocks(root, studio, edit) {
  /** @type {Tree[][]} */
  let terms = [];
  const body = element("div", { class: "blocks" });
  root.append(element("details", { open: true }, element("summary", { text: "Compose" }), body));

  const send = () => edit(terms.map((factors) => factors.map(written).join(" * ")).join(" + "));
  const leafOf = (/** @type {string} */ name) => {
    const spec = studio.value.hello.kernels.find((/** @type {any} */ k) => k.name === name);
    const parameters = Object.fromEntries((spec?.parameters ?? []).map((/** @type {any} */ p) => [p.name, p.default]));
    return { name, parameters, text: spec?.text };
  };
  const factor = (/** @type {Tree[]} */ factors, /** @type {number} */ at) => {
    const leaf = factors[at];
    const names = studio.value.hello.kernels.map((/** @type {any} */ k) => k.name);
    if (!names.includes(leaf.name)) names.push(leaf.name);
    const select = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": "kernel of this block" },
      names.map((/** @type {string} */ name) => element("option", { value: name, text: name, selected: name === leaf.name }))));
    select.addEventListener("change", () => {
      factors[at] = leafOf(select.value);
      send();
    });
    const remove = element("button", { type: "button", class: "plain", "aria-label": `remove ${leaf.name}`, text: "×", onclick: () => {
      factors.splice(at, 1);
      terms = terms.filter((term) => term.length);
      if (terms.length) send();
    } });
    const alone = terms.length === 1 && factors.length === 1;
    return element("span", { class: "block" }, select, alone ? null : remove);
  };
  const draw = () => refill(body,
    terms.map((factors, i) => element("div", { class: "term" },
      i ? element("span", { class: "sign", text: "+" }) : null,
      factors.flatMap((_, j) => [j ? element("span", { class: "sign", text: "×" }) : null, factor(factors, j)]),
      element("button", { type: "button", class: "plain", text: "× …", "aria-label": "multiply by another kernel", onclick: () => {
        factors.push(leafOf("linear"));
        send();
      } }))),
    element("button", { type: "button", text: "+ add a kernel", onclick: () => {
      terms.push([leafOf("linear")]);
      send();
    } }));

  return (tree) => {
    const found = tree && sum(tree);
    if (found) {
      terms = found;
      draw();
    } else refill(body, element("p", { class: "help", text: "Blocks cannot show this kernel; edit its text." }));
  };
}

/**
 * Return a tree as a sum of products of leaves, or null.
 *
 * @param {Tree} tree
 * @returns {Tree[][] | null}
 */
function sum(tree) {
  if (tree.name !== "sum") {
    const one = product(tree);
    return one && [one];
  }
  const parts = (tree.parts ?? []).map(sum);
  return parts.every(Boolean) ? /** @type {Tree[][]} */ (parts.flat()) : null;
}

/**
 * @param {Tree} tree
 * @returns {Tree[] | null}
 */
function product(tree) {
  if (tree.name === "product") {
    const parts = (tree.parts ?? []).map(product);
    return parts.every(Boolean) ? /** @type {Tree[]} */ (parts.flat()) : null;
  }
  return tree.parts?.length ? null : [tree];
}

/**
 * Return a leaf as text.
 *
 * @param {Tree} leaf
 */
function written(leaf) {
  const given = Object.entries(leaf.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return given.length ? `${leaf.name}(${given.join(", ")})` : leaf.name;
}
