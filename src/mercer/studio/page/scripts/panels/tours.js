/**
 * Tours: short walks through a method, frame by frame, with play, step and rewind.
 */

import { element, refill } from "../common/elements.js";
import { icon } from "../common/icons.js";
import { sceneOf } from "../state/scene.js";

const PACE = 2600; // milliseconds of a frame while it plays

/**
 * @param {HTMLElement} root
 * @param {import("../state/studio.js").Studio} studio
 * @param {import("../link/socket.js").Link} link
 */
export function installTours(root, studio, link) {
  const list = element("div");
  const player = element("section", { class: "player", hidden: true, "aria-label": "Tour" });
  root.append(player, list);
  /** @type {any} */
  let before = null;
  let timer = 0;

  const start = async (/** @type {string} */ name) => {
    const frame = await link.ask("tour", { name }).done;
    if (frame.kind !== "answer") {
      refill(player, element("p", { class: "refusal", text: frame.words ?? "The tour was cut off." }));
      player.hidden = false;
      return;
    }
    before ??= studio.scene;
    go(frame, 0, false);
  };
  const go = (/** @type {any} */ tour, /** @type {number} */ at, /** @type {boolean} */ playing) => {
    clearTimeout(timer);
    const frame = tour.frames[at];
    const scene = sceneOf(frame.scene);
    const answered = frame.answer !== null && frame.answer !== undefined;
    studio.set({
      tour: { ...tour, at, playing, answered },
      scene,
      marked: new Set(frame.mark ?? []),
      ...(answered ? { answer: { ...frame.answer, scene }, refusal: null } : {}),
    });
    show();
    if (playing && at + 1 < tour.frames.length) timer = window.setTimeout(() => go(tour, at + 1, true), PACE);
    else if (playing) timer = window.setTimeout(() => go(tour, at, false), 0);
  };
  const leave = (/** @type {boolean} */ keep) => {
    clearTimeout(timer);
    const back = before;
    before = null;
    const scene = studio.scene;
    studio.set({ tour: null, marked: new Set(), scene: back ?? scene });
    if (keep) studio.edit(scene);
    player.hidden = true;
    show();
  };
  const show = () => {
    const { tour, hello } = studio.value;
    refill(list, tour ? null : menu(hello?.tours ?? [], start));
    player.hidden = !tour;
    if (!tour) {
      refill(player); // its buttons would hold all frames
      return;
    }
    const frame = tour.frames[tour.at];
    const last = tour.frames.length - 1;
    const button = (/** @type {any} */ name, /** @type {string} */ label, /** @type {() => void} */ onclick, disabled = false) =>
      element("button", { type: "button", class: "square", id: `tour-${name}`, "aria-label": label, title: label, onclick, disabled }, icon(name));
    const focused = document.activeElement?.id;
    const range = /** @type {HTMLInputElement} */ (element("input", { type: "range", min: 0, max: last, "aria-label": "Frame of the tour", "aria-valuetext": `${tour.at + 1} of ${last + 1}` }));
    range.value = String(tour.at);
    range.addEventListener("input", () => go(tour, Number(range.value), false));
    refill(player,
      element("p", { class: "over", text: tour.title }),
      element("h2", { text: frame.title }),
      element("p", { class: "tour-text", text: frame.text, "aria-live": "polite" }),
      range,
      element("div", { class: "row" },
        button("rewind", "Rewind", () => go(tour, 0, false), tour.at === 0),
        button("back", "Step back", () => go(tour, tour.at - 1, false), tour.at === 0),
        tour.playing ? button("pause", "Pause", () => go(tour, tour.at, false))
          : button("play", "Play", () => go(tour, tour.at === last ? 0 : tour.at, true)),
        button("step", "Step", () => go(tour, tour.at + 1, false), tour.at === last),
        element("span", { class: "help", text: `${tour.at + 1} of ${last + 1}` })),
      element("div", { class: "row after" },
        element("button", { type: "button", id: "tour-keep", text: "Play with this scene", onclick: () => leave(true) }),
        element("button", { type: "button", id: "tour-leave", text: "All tours", onclick: () => leave(false) })),
      tour.source ? element("p", { class: "help", text: tour.source }) : null);
    if (focused?.startsWith("tour-")) (document.getElementById(focused) ?? document.getElementById("tour-play"))?.focus();
  };
  studio.watch(["hello"], show);
  show();
}

/**
 * @param {any[]} tours
 * @param {(name: string) => void} start
 */
function menu(tours, start) {
  const families = [...new Set(tours.map((tour) => tour.family))];
  return families.flatMap((family) => [
    element("h2", { text: family.charAt(0).toUpperCase() + family.slice(1) }),
    element("ul", { class: "menu" }, tours.filter((tour) => tour.family === family).map((tour) =>
      element("li", {}, element("button", { type: "button", "data-tour": tour.name, onclick: () => start(tour.name) },
        element("span", {}, element("strong", { text: tour.title }), element("span", { class: "help block", text: tour.words })))))),
  ]);
}
