/**
 * The studio's page: parts are made here and joined to the one state that they all watch.
 */

import { named } from "./common/elements.js";
import { installTheme } from "./common/theme.js";
import { followScene } from "./link/fits.js";
import { Link } from "./link/socket.js";
import { installData, opened } from "./panels/data.js";
import { installExports } from "./panels/exports.js";
import { installKernel } from "./panels/kernel.js";
import { installMachine } from "./panels/machine.js";
import { installProof } from "./panels/proof.js";
import { installLegend } from "./frame/legend.js";
import { installTabs } from "./frame/tabs.js";
import { installToolbar, takePreset } from "./frame/toolbar.js";
import { installTours } from "./panels/tours.js";
import { installTune } from "./panels/tune.js";
import { installVerdict } from "./frame/verdict.js";
import { installWhy } from "./panels/why.js";
import { installKeyboard, installUndo } from "./plane/keyboard.js";
import { Painter } from "./plane/painter.js";
import { installPointer } from "./plane/pointer.js";
import { installHeader } from "./frame/header.js";
import { followAddress, sceneOfAddress } from "./state/location.js";
import { Studio } from "./state/studio.js";

const FIRST = "moons"; // what a reader sees who opens the page for the first time

const studio = new Studio();
const link = new Link(new URLSearchParams(location.search).get("token") ?? "");
const plane = named("plane");
const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ (named(id));
const painter = new Painter(plane, canvas("below"), canvas("above"), studio);
const fits = followScene(studio, link);
const announce = installVerdict(named("verdict"), named("voice"), studio, fits.cancel);

installPointer(plane, studio, painter);
installKeyboard(plane, studio, painter, announce);
installUndo(studio);
const toolbar = installToolbar(named("tools"), studio, link);
installTabs(named("tabs"), studio);
installMachine(named("machine-fields"), studio, link);
installTune(named("tune-fields"), studio, link);
installKernel(named("panel-kernel"), studio, link);
installProof(named("panel-proof"), studio, link);
installWhy(named("panel-why"), studio, link);
installData(named("data-fields"), plane, studio, link);
installExports(named("export-fields"), studio, link, painter);
installTours(named("panel-learn"), studio, link);
installLegend(named("legend"), studio, painter);
installHeader(studio, announce);
installTheme(named("theme"), () => {
  painter.repaint();
  toolbar.redraw();
});

const kept = await sceneOfAddress();
if (kept) studio.begin(kept);
followAddress(studio);

link.addEventListener("hello", async (event) => {
  const hello = /** @type {CustomEvent} */ (event).detail;
  const first = studio.value.hello === null;
  studio.set({ hello });
  if (first && hello.table) {
    if (kept?.table?.id === hello.table.id) studio.set({ table: hello.table });
    else if (!kept) opened(studio, hello.table);
  }
  studio.set({ connected: true });
  if (first && !kept && !hello.table) await takePreset(studio, link, FIRST, true);
});
link.addEventListener("cut", (event) =>
  studio.set({ connected: false, working: false, cut: /** @type {CustomEvent} */ (event).detail }));
link.connect();
