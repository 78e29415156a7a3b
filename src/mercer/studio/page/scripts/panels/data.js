/**
 * The reader's own data: a file, its columns, the target, and what the plane shows of it.
 */

import { element, refill } from "../common/elements.js";
import { counted } from "../common/numbers.js";
import { upload } from "../link/files.js";
import { sceneOf } from "../state/scene.js";
import { viewFields } from "./table_view.js";

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} plane takes dropped files, too
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installData(root, plane, studio, link) {
  const file = /** @type {HTMLInputElement} */ (element("input", { type: "file", id: "file", class: "hidden-text", accept: ".csv,.tsv,.txt,.json,.jsonl,.parquet,.arrow,.feather,.arff,.libsvm,.svm,text/csv" }));
  const says = element("p", { class: "help", role: "status", id: "data-says", text: "Your data stay on this computer." });
  const table = element("div", { id: "table" });
  const back = element("button", { type: "button", text: "Back to painting", hidden: true, onclick: () => {
    const { table: _, plane: __, ...rest } = studio.scene;
    studio.edit({ ...rest, table: null, plane: null, bounds: [-1.5, 1.5, -1.5, 1.5], parameters: {}, kernel: null });
  } });
  root.append(element("h2", { text: "Your data" }),
    element("div", { class: "row" }, element("label", { class: "button main", for: "file", text: "Open a table …" }), file, back),
    says, table);

  const open = async (/** @type {File} */ chosen) => {
    says.textContent = `Reading ${chosen.name} …`;
    const found = await upload(chosen, link.token, studio.value.hello?.limits.upload ?? 2 ** 24);
    if (found.error) {
      says.textContent = found.error;
      studio.set({ panel: "data" });
      return;
    }
    opened(studio, found);
    studio.set({ panel: "data" });
  };
  file.addEventListener("change", () => {
    if (file.files?.[0]) open(file.files[0]);
    file.value = "";
  });
  installDrop(plane, open);
  installDrop(root, open);

  const show = () => {
    const { table: known, scene } = studio.value;
    const current = scene.table && known && scene.table.id === known.id ? known : null;
    back.hidden = !scene.table;
    if (!current) {
      says.textContent = scene.table ? "The table of this scene is not open; open its file again." : "Open a file with one row per sample and column names in the first line. Your data stay on this computer.";
      refill(table);
      return;
    }
    says.textContent = `${current.name}: ${counted(current.rows, "row")}, ${counted(current.columns.length, "column")}. Your data stay on this computer.`;
    refill(table, targetField(studio, current), viewFields(studio, current), columnsOf(studio, current));
  };
  studio.watch(["table"], show);
  let last = "";
  studio.watch(["scene"], () => {
    const key = JSON.stringify([studio.scene.table, studio.scene.plane?.kind, studio.scene.plane?.x, studio.scene.plane?.y]);
    if (key !== last) show();
    last = key;
  });
  show();
}

/**
 * Show a table that the server has read.
 *
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 */
export function opened(studio, table) {
  studio.set({ table, tour: null });
  const scene = sceneOf(table.scene);
  // a slice through many columns shows rows far from it: the plane through all of them misleads less
  const many = table.columns.filter((/** @type {any} */ c) => c.usable && c.name !== table.target).length > 2;
  const kind = scene.task === "classes" ? "discriminant" : "components";
  studio.edit(many ? { ...scene, plane: { kind }, bounds: null } : scene);
}

/**
 * @param {HTMLElement} target
 * @param {(file: File) => void} open
 */
function installDrop(target, open) {
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    target.classList.add("dropping");
  });
  target.addEventListener("dragleave", () => target.classList.remove("dropping"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (file) open(file);
  });
}

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 */
function targetField(studio, table) {
  const select = /** @type {HTMLSelectElement} */ (element("select", { id: "target" },
    element("option", { value: "", text: "none (unsupervised)" }),
    table.columns.filter((/** @type {any} */ c) => c.usable).map((/** @type {any} */ c) => element("option", { value: c.name, text: c.name }))));
  select.value = studio.scene.table?.target ?? "";
  select.addEventListener("change", () => {
    const target = select.value || null;
    const column = table.columns.find((/** @type {any} */ c) => c.name === target);
    const task = taskOf(column);
    const machine = studio.value.hello.machines.find((/** @type {any} */ m) => m.tasks.includes(task)).name;
    const stays = task === studio.scene.task;
    studio.edit({
      task, plane: planeFor(studio.scene.plane, task, target), bounds: null,
      table: { id: table.id, columns: null, target },
      ...(stays ? {} : { machine, parameters: {}, kernel: null }),
    });
  });
  return element("div", { class: "field" }, element("label", { for: "target", text: "Target" }), select);
}

/**
 * Return the plane that stays when the target changes: axes that are not the target, directions that there are.
 *
 * @param {any} plane
 * @param {string} task
 * @param {string | null} target
 */
function planeFor(plane, task, target) {
  if (plane?.kind === "discriminant" && task !== "classes") return { kind: "components" };
  if (plane?.kind === "correlation" && task !== "targets") return { kind: "components" };
  if (plane?.kind === "columns" && (plane.x === target || plane.y === target)) return { kind: "columns" };
  return plane;
}

/**
 * Return the task that a column as target gives.
 *
 * @param {any} column
 */
function taskOf(column) {
  if (!column) return "unlabelled";
  return column.levels || column.kind === "binary" || column.kind === "category" ? "classes" : "targets";
}

/**
 * @param {import("../state/studio.js").Studio} studio
 * @param {any} table
 */
function columnsOf(studio, table) {
  const used = studio.scene.table?.columns;
  const box = (/** @type {any} */ column) => {
    const checked = column.usable && column.name !== studio.scene.table?.target && (!used || used.includes(column.name));
    const input = /** @type {HTMLInputElement} */ (element("input", {
      type: "checkbox", checked, disabled: !column.usable || column.name === studio.scene.table?.target, "aria-label": `use ${column.name}` }));
    input.addEventListener("change", () => {
      const names = table.columns.filter((/** @type {any} */ c) => c.usable && c.name !== studio.scene.table?.target).map((/** @type {any} */ c) => c.name);
      const now = names.filter((/** @type {string} */ name) => (name === column.name ? input.checked : !used || used.includes(name)));
      const plane = studio.scene.plane?.kind === "columns" ? { kind: "columns" } : studio.scene.plane; // an axis may be gone
      studio.edit({ plane, table: { id: table.id, target: studio.scene.table?.target ?? null, columns: now.length === names.length ? null : now }, bounds: null });
    });
    return input;
  };
  return element("details", { open: table.columns.length < 12 }, element("summary", { text: "Columns" }),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Columns of the table" }, element("table", {},
      element("thead", {}, element("tr", {}, ["use", "column", "kind", "missing"].map((text) => element("th", { scope: "col", text })))),
      element("tbody", {}, table.columns.map((/** @type {any} */ column) => element("tr", {}, element("td", {}, box(column)),
        element("th", { scope: "row", text: column.name }), element("td", { text: kindOf(column) }), element("td", { text: String(column.missing) })))))));
}

/** @param {any} column */
function kindOf(column) {
  return column.levels?.length ? `${column.kind}, ${column.levels.length}` : column.kind;
}
