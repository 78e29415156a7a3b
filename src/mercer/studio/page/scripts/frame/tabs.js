/**
 * Tabs: one panel at a time; arrows move between them.
 */

/**
 * @param {HTMLElement} list
 * @param {import("../state/studio.js").Studio} studio
 */
export function installTabs(list, studio) {
  const tabs = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
  const panelOf = (/** @type {HTMLElement} */ tab) =>
    /** @type {HTMLElement} */ (document.getElementById(tab.getAttribute("aria-controls") ?? ""));
  const show = () => {
    for (const tab of tabs) {
      const chosen = tab.dataset.panel === studio.value.panel;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panelOf(tab).hidden = !chosen;
      if (chosen) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  };
  for (const tab of tabs) tab.addEventListener("click", () => studio.set({ panel: tab.dataset.panel }));
  list.addEventListener("keydown", (event) => {
    const at = tabs.findIndex((tab) => tab.dataset.panel === studio.value.panel);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    studio.set({ panel: tab.dataset.panel });
    tab.focus();
  });
  studio.watch(["panel"], show);
  show();
}
