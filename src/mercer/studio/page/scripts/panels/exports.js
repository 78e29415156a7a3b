/**
 * Export: model file, Python code, data, picture, report.
 */

import { element } from "../common/elements.js";
import { blobOf, download } from "../link/files.js";
import { pngOf, svgOf } from "../plane/picture.js";
import { asked } from "../state/scene.js";

const FILES = [
  ["model", "Model file"],
  ["python", "Python code"],
  ["libsvm", "LIBSVM data"],
  ["csv", "CSV data"],
];

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 * @param {import("../plane/painter.js").Painter} painter
 */
export function installExports(root, studio, link, painter) {
  const says = element("p", { class: "help", role: "status", id: "export-says" });
  const stop = element("button", { type: "button", text: "Stop", hidden: true });
  /** @type {import("../link/socket.js").Asked | null} */
  let running = null;

  const take = async (/** @type {string} */ what) => {
    const frame = await link.ask("export", { scene: asked(studio.scene, 2), what }).done;
    given(frame);
  };
  const given = (/** @type {any} */ frame) => {
    if (frame.kind === "answer") {
      download(frame.name, blobOf(frame));
      says.textContent = `${frame.name} saved.`;
    } else says.textContent = frame.kind === "refused" ? frame.words : "Stopped.";
  };
  const report = async () => {
    says.textContent = "Writing the report …";
    stop.hidden = false;
    running = link.ask("report", { scene: asked(studio.scene, 2) }, (progress) => {
      says.textContent = progress.words;
    });
    const frame = await running.done;
    stop.hidden = true;
    given(frame);
  };
  stop.addEventListener("click", () => running?.cancel());
  const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {() => void} */ onclick) =>
    element("button", { type: "button", id: `export-${id}`, text, onclick });
  root.append(
    element("h2", { text: "Export" }),
    element("div", { class: "row" },
      button("report", "Report", report), stop,
      FILES.map(([what, text]) => button(what, text, () => take(what))),
      button("png", "PNG", async () => download("studio.png", await pngOf(painter))),
      button("svg", "SVG", () => download("studio.svg", svgOf(painter)))),
    says,
  );
}
