// As much of a document as preact needs to draw into: for tests of what is drawn, without a browser.

class Node {
  constructor(name) {
    this.nodeName = name;
    this.localName = name;
    this.nodeType = name === "#text" ? 3 : 1;
    this.childNodes = [];
    this.parentNode = null;
    this.attributes = [];
    this.style = {};
    this.data = "";
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get nextSibling() {
    const { childNodes } = this.parentNode;
    return childNodes[childNodes.indexOf(this) + 1] ?? null;
  }

  insertBefore(child, before) {
    child.parentNode?.removeChild(child);
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, child);
    child.parentNode = this;
    return child;
  }

  appendChild(child) {
    return this.insertBefore(child, null);
  }

  removeChild(child) {
    this.childNodes.splice(this.childNodes.indexOf(child), 1);
    child.parentNode = null;
    return child;
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }

  removeAttribute(name) {
    delete this.attributes[name];
  }

  addEventListener(type) {
    this.listens ??= new Set();
    this.listens.add(type);
  }

  removeEventListener() {}

  /** Do what a click does; preact keeps a handler under its event's name. */
  click() {
    for (const type of Object.keys(this.l ?? {})) {
      if (type.toLowerCase().startsWith("click")) this.l[type].call(this, { type: "click", currentTarget: this, target: this, preventDefault() {} });
    }
  }

  /** All nodes below, itself included, that satisfy a condition. */
  all(wanted) {
    const found = wanted(this) ? [this] : [];
    for (const child of this.childNodes) found.push(...child.all(wanted));
    return found;
  }

  get text() {
    return this.nodeType === 3 ? this.data : this.childNodes.map((child) => child.text).join("");
  }
}

globalThis.document = {
  createElement: (name) => new Node(name),
  createElementNS: (_, name) => Object.assign(new Node(name), { ownerSVGElement: name === "svg" ? undefined : null }),
  createTextNode: (data) => Object.assign(new Node("#text"), { data }),
  querySelector: () => null, // no dialog is ever open here
  head: { append: (sheet) => sheet.onload() },
};
const listeners = new Map();
globalThis.addEventListener = (type, listener) => listeners.set(listener, type);
globalThis.removeEventListener = (_, listener) => listeners.delete(listener);

/** Press a key. */
export function press(key) {
  for (const [listener, type] of [...listeners]) if (type === "keydown") listener({ key, target: {}, preventDefault() {} });
}

/** A place to draw in. */
export function place() {
  return new Node("div");
}

// A frame is as good as drawn: effects come a turn of the event loop later, and not after a time.
globalThis.requestAnimationFrame = (callback) => setTimeout(callback, 0);
globalThis.cancelAnimationFrame = clearTimeout;

/** Let everything happen that has been put off: timers of no time come in their order, and none is put off more than twice. */
export async function settled() {
  for (let turns = 0; turns < 6; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
}

/** The names of all cards that are face up. */
export function cardsIn(node) {
  const shown = node.all((each) => each.localName === "svg" && /\bcard\b/.test(each.attributes.class ?? "") && !/\bback\b/.test(each.attributes.class));
  return shown.map((each) => each.attributes["data-card"]);
}
