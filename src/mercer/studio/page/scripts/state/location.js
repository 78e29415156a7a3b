/**
 * The address follows the scene, so that a reload or a copied address shows the same.
 */

import { fragmentOf, sceneOfFragment } from "./address.js";

const REST = 400; // milliseconds without a change; browsers refuse addresses that change too often

/** @returns {Promise<import("./scene.js").Scene | null>} */
export function sceneOfAddress() {
  return sceneOfFragment(location.hash);
}

/** @param {import("./studio.js").Studio} studio */
export function followAddress(studio) {
  let timer = 0;
  let own = location.hash;
  const tell = (/** @type {"behind" | "current"} */ state) => (document.body.dataset.address = state);
  tell(own ? "current" : "behind");
  const write = async () => {
    if (studio.value.tour) return; // a frame of a tour is not the reader's scene
    const scene = studio.scene;
    own = `#${await fragmentOf(scene)}`;
    if (own !== location.hash) history.replaceState(null, "", own);
    if (scene === studio.scene) tell("current");
  };
  studio.watch(["scene", "tour"], () => {
    clearTimeout(timer);
    tell("behind");
    timer = window.setTimeout(write, REST);
  });
  window.addEventListener("hashchange", async () => {
    if (location.hash === own) return;
    const scene = await sceneOfAddress();
    if (scene) studio.edit(scene);
  });
}
