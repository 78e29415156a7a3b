/**
 * Light and dark: what the reader's system says, until they choose.
 */

const KEY = "mercer-studio-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

/** @returns {"light" | "dark"} */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

/**
 * Follow the system and the switch; call `changed` after each change.
 *
 * @param {HTMLElement} button
 * @param {() => void} changed
 */
export function installTheme(button, changed) {
  const kept = read();
  if (kept) document.documentElement.dataset.theme = kept;
  const say = () => {
    const words = theme() === "dark" ? "Light page" : "Dark page";
    button.setAttribute("aria-label", words);
    button.title = words;
  };
  button.addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    keep(next);
    say();
    changed();
  });
  system.addEventListener("change", () => {
    say();
    changed();
  });
  say();
}

/** @returns {string | null} */
function read() {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null; // storage is closed to frames of other sites, as in some notebooks
  }
}

/** @param {string} value */
function keep(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // the theme holds until the page is closed
  }
}
