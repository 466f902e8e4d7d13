// @ts-check
// What the browser remembers, for this tab or for all. One that keeps nothing forgets at once, and all else works.

/** What was kept, "" for nothing. @param {string} key @param {"sessionStorage" | "localStorage"} [where] */
export function kept(key, where = "localStorage") {
  try {
    return window[where].getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Keep a text, or with "" nothing more. @param {string} key @param {string} text @param {"sessionStorage" | "localStorage"} [where] */
export function keep(key, text, where = "localStorage") {
  try {
    if (text) window[where].setItem(key, text);
    else window[where].removeItem(key);
  } catch {
    // as said above
  }
}
