// @ts-check
// Texts in the browser's storage, for this tab or all tabs. Without a storage everything else works.

/** A stored text, "" if there is none. @param {string} key @param {"sessionStorage" | "localStorage"} [where] */
export function load(key, where = "localStorage") {
  try {
    return window[where].getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Store a text; "" removes it. @param {string} key @param {string} text @param {"sessionStorage" | "localStorage"} [where] */
export function save(key, text, where = "localStorage") {
  try {
    if (text) window[where].setItem(key, text);
    else window[where].removeItem(key);
  } catch {
    // no storage
  }
}
