/**
 * Files in and out: uploads to this machine's own server, downloads from the page.
 */

import { bytes } from "./arrays.js";

/**
 * Send a table's file; return its description, or words that say why not.
 *
 * @param {File} file
 * @param {string} token
 * @param {number} most bytes
 * @returns {Promise<any>} a table, or `{error: words}`
 */
export async function upload(file, token, most) {
  if (file.size > most) {
    return { error: `${file.name} has ${Math.ceil(file.size / 2 ** 20)} MB; the studio takes ${Math.floor(most / 2 ** 20)} MB. Use the command "mercer fit" for it.` };
  }
  try {
    const response = await fetch(new URL("table", document.baseURI), {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify({ name: file.name, base64: await base64(file) }),
    });
    return await response.json();
  } catch {
    return { error: "No connection to the studio. Check that the command is still running." };
  }
}

/** @param {File} file */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

/**
 * Hand a file to the reader.
 *
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the browser has taken it by then
}

/**
 * Return the file of an answer of the server.
 *
 * @param {{base64: string, type: string}} frame
 */
export function blobOf(frame) {
  return new Blob([/** @type {BlobPart} */ (bytes(frame.base64))], { type: frame.type });
}
