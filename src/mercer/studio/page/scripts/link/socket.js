/**
 * The link to the server: requests out, frames in; it comes back by itself when it was cut.
 */

const FIRST_WAIT = 250; // milliseconds until the link is tried again; doubled each time
const LONGEST_WAIT = 5000;

/**
 * @typedef {object} Asked
 * @property {number} id
 * @property {Promise<any>} done the answer, refusal or cancellation
 * @property {() => void} cancel
 */

export class Link extends EventTarget {
  /** @param {string} token */
  constructor(token) {
    super();
    this.token = token;
    this.next = 1;
    /** @type {Map<number, {done: (frame: any) => void, progress?: (frame: any) => void}>} */
    this.open = new Map();
    this.wait = FIRST_WAIT;
    /** @type {WebSocket | null} */
    this.socket = null;
  }

  connect() {
    const address = new URL("socket", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.search = new URLSearchParams({ token: this.token }).toString();
    address.hash = "";
    const socket = new WebSocket(address);
    socket.addEventListener("message", (event) => this.#heard(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => this.#cut(event.reason));
    this.socket = socket;
  }

  get ready() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /**
   * Ask; the promise always comes true, with kind "answer", "refused" or "cancelled".
   *
   * @param {string} what
   * @param {Record<string, any>} fields
   * @param {(frame: any) => void} [progress]
   * @returns {Asked}
   */
  ask(what, fields = {}, progress) {
    const id = this.next;
    this.next += 1;
    const done = new Promise((resolve) => {
      if (!this.ready) {
        resolve({ id, kind: "cancelled", do: what, why: "cut" });
        return;
      }
      this.open.set(id, { done: resolve, progress });
      this.socket?.send(JSON.stringify({ id, do: what, ...fields }));
    });
    return { id, done, cancel: () => this.#cancel(id) };
  }

  /** @param {number} of */
  #cancel(of) {
    if (this.ready && this.open.has(of)) this.ask("cancel", { of });
  }

  /** @param {any} frame */
  #heard(frame) {
    if (frame.kind === "hello") {
      this.wait = FIRST_WAIT;
      this.dispatchEvent(new CustomEvent("hello", { detail: frame }));
      return;
    }
    const waiting = this.open.get(frame.id);
    if (!waiting) return;
    if (frame.kind === "progress") {
      waiting.progress?.(frame);
      return;
    }
    this.open.delete(frame.id);
    waiting.done(frame);
  }

  /** @param {string} reason of the server, if it gave one */
  #cut(reason) {
    for (const [id, waiting] of this.open) waiting.done({ id, kind: "cancelled", why: "cut" });
    this.open.clear();
    this.dispatchEvent(new CustomEvent("cut", { detail: reason }));
    setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }
}
