"""A real Chromium for tests of the page, which records faults while a test looks at something else.

`browser()` is the machine's own Chromium, driven by playwright. `BrowserWindow` is one window at an
arena. It records the errors of its console, requests to other hosts, and the files that were
fetched. `BrowserWindow.sound()` asserts that there was no fault, that nothing is wider than the
window, and that axe-core finds no serious fault of accessibility.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Response
    from playwright.sync_api import Request as Asked
from tests.support.needs import found, skip_without

__all__ = ["PHONE", "PROJECTOR", "SIZES", "WAITS", "BrowserWindow", "axe_source", "browser"]

PROJECTOR, PHONE = (1920, 1080), (390, 844)
SIZES = {"projector": PROJECTOR, "phone": PHONE}
# Keeps the delay of each timer that the page sets, in `window.waits`.
WAITS = """() => {
  const { setTimeout } = window;
  window.waits = [];
  window.setTimeout = (call, wait) => {
    window.waits.push(wait);
    return setTimeout(call, wait);
  };
}"""

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NETWORK = "net::ERR_NETWORK_CHANGED"  # another program has changed the machine's network
_WAIT_MS = 120_000  # for anything that is to appear, on a machine however busy

_WIDER = """() => {
  const { scrollWidth } = document.scrollingElement;
  if (scrollWidth <= innerWidth) return [];
  const scrolls = (one) => one && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one.parentElement))
    .slice(0, 5)
    .map((one) => `<${one.localName} class="${one.getAttribute("class") ?? ""}"> ends at ${Math.round(one.getBoundingClientRect().right)}`)
    .concat(`the page is ${scrollWidth} wide, the window ${innerWidth}`);
}"""
_GO = """route => new Promise((done) => {
  location.hash = route;
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
_DRAWN = "() => new Promise((done) => { scrollTo(0, 0); requestAnimationFrame(() => requestAnimationFrame(done)); })"
# Show nothing that moves; true if the page must be loaded again to forget what it has stored.
_FORGET = """async () => {
  if (!document.querySelector("#app")) return true;
  const kept = localStorage.length + sessionStorage.length;
  localStorage.clear();
  sessionStorage.clear();
  if (!kept && location.hash !== "#/nowhere") await new Promise((done) => {
    addEventListener("hashchange", done, { once: true });
    location.hash = "#/nowhere";
  });
  return kept > 0;
}"""
_READY = "() => document.querySelector('main h1') && !document.querySelector('.loading')"
_AXE = """async (colours) => {
  const more = { "target-size": true, "scrollable-region-focusable": true, "color-contrast": colours };
  const rules = Object.fromEntries(Object.entries(more).map(([rule, enabled]) => [rule, { enabled }]));
  const at = scrollY; // what lies just below a bar that stays can be scrolled out from under it
  scrollTo(0, 0);
  const { violations } = await axe.run(document, { preload: false, resultTypes: ["violations"], rules });
  scrollTo(0, at);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ` + nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + " " + (node.any[0]?.message ?? "")).join(" | "));
}"""


@contextmanager
def browser() -> Iterator[Browser]:
    """The machine's Chromium. Skips the test if there is none; where `CI` is set, fails it."""
    skip_without("playwright", "chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=found("chromium"), args=list(_ARGUMENTS)
        )
        try:
            yield chromium
        finally:
            chromium.close()


@cache
def axe_source() -> str | None:
    """The text of axe-core; None where it is not installed, which a test of its own says."""
    script = found("axe-core")
    return Path(script).read_text(encoding="utf-8") if script else None


class BrowserWindow:
    """A window at an arena's page, and its faults.

    Args:
        browser: opens it.
        url: the arena's.
        size: in pixels.
        axe: the text of axe-core; without it accessibility is not checked.
    """

    def __init__(
        self, browser: Browser, url: str, size: tuple[int, int] = PROJECTOR, axe: str | None = None
    ) -> None:
        width, height = size
        self.url, self.size = url, size
        self.faults: list[str] = []
        self.fetched: dict[str, int] = {}
        self._axe = axe
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            ignore_https_errors=True,  # a test signs its certificate itself
        )
        self._context.set_default_timeout(_WAIT_MS)
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page: Page = self._context.new_page()
        self._expected: re.Pattern[str] | None = None
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)
        self.page.on("websocket", lambda socket: self._on_host(socket.url))

    def close(self) -> None:
        self._context.close()

    def to(self, route: str = "#/") -> Page:
        """Open a view as a link does, and wait for it; the first one loads the page."""
        if self.page.url.startswith(self.url):
            self.page.evaluate(_GO, route)
        else:
            self.page.goto(f"{self.url}/{route}")
        self.page.wait_for_function(_READY)
        return self.page

    def reset(self) -> None:
        """Leave the window as a new one, for the next test."""
        for page in self._context.pages:
            if page != self.page:
                page.close()
        self.page.unroute_all()
        self.page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
        if self.page.evaluate(_FORGET):
            self.page.goto("about:blank")
        self.faults.clear()

    @contextmanager
    def expecting(self, pattern: str) -> Iterator[None]:
        """Allow console errors that match: browsers log every request that an arena refuses."""
        self._expected = re.compile(pattern) if pattern else None
        try:
            yield
        finally:
            self._expected = None

    def resize(self, size: tuple[int, int]) -> None:
        """Give the window another size, and let its page be drawn."""
        if size == self.size:
            return
        self.size = size
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.evaluate(_DRAWN)

    def sound(self, what: str, *, axe: bool = True, colours: bool = True) -> None:
        """Assert that there was no fault so far, and none in what is shown now.

        `axe=False` leaves out the check of accessibility, which takes a second, where another test
        makes it on a similar view. `colours=False` leaves out its rule on contrast, the larger part
        of that, where it is checked on a phone: small letters need the most contrast.
        """
        faults, self.faults = self.faults, []
        assert faults == [], f"{what}: {faults}"
        wider = self.page.evaluate(_WIDER)
        assert wider == [], f"{what} at {self.size}: {wider}"
        if axe and self._axe is not None:
            if not self.page.evaluate("() => 'axe' in window"):
                self.page.evaluate(self._axe)
            violations = self.page.evaluate(_AXE, colours)
            assert violations == [], f"{what} at {self.size}: {'; '.join(violations)}"

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning") or _NETWORK in message.text:
            return
        fault = f"console: {message.text} {json.dumps(message.location)}"
        if self._expected is None or not self._expected.search(fault):
            self.faults.append(fault)

    def _on_request(self, request: Asked) -> None:
        self._on_host(request.url)

    def _on_host(self, url: str) -> None:
        if urlsplit(url).scheme in ("data", "blob"):
            return
        if urlsplit(url).netloc != urlsplit(self.url).netloc:
            self.faults.append(f"asked another host: {url}")

    def _on_response(self, response: Response) -> None:
        path = urlsplit(response.url).path
        if response.status == 200 and not path.startswith("/api/"):
            self.fetched.setdefault(path, 0)

    def sizes(self, *, compressed: bool) -> dict[str, int]:
        """The number of bytes of each file of the page that was fetched so far."""
        headers = {"Accept-Encoding": "gzip" if compressed else "identity"}
        for path in self.fetched:
            with urlopen(Request(self.url + path, headers=headers)) as file:
                self.fetched[path] = len(file.read())
        return dict(self.fetched)
