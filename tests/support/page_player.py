"""A person at the page, who plays by clicking the first legal move."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.support.browser import BrowserWindow

__all__ = ["PagePlayer", "sit_down"]

_SHOWN = "() => ['.turn', '.log'].map((one) => document.querySelector(one)?.innerHTML).join()"
_CHANGED = f"before => ({_SHOWN})() !== before"


class PagePlayer:
    """A person at a table; the moves are those that the page offers."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.turn = page.get_by_role("group", name="Your turn")
        self.go_on = self.turn.get_by_role("group", name="Go on").get_by_role("button")
        self.result = page.get_by_role("region", name="The result")

    @property
    def moves(self) -> Locator:
        """The buttons that are enabled: moves, and cards in the hand."""
        return self.turn.get_by_label("Your moves").locator("button:enabled")

    def may_move(self) -> bool:
        """Wait for a question or the end of the round; True for a question."""
        self.moves.or_(self.go_on).or_(self.result).first.wait_for()
        return self.moves.count() > 0

    def move(self) -> None:
        """Make the first move that is offered; of a hand of cards the last one goes."""
        before = self.shown()
        cards, amount = self.turn.locator(".pick"), self.turn.locator("form")
        if cards.count():
            cards.last.click()
            self.moves.filter(has_text="Discard the").click()
        elif amount.count():
            amount.locator("button[type=submit]").click()
        else:
            self.moves.first.click()
        self.changed(before)

    def shown(self) -> str:
        """The question with its moves, and the list of events."""
        return str(self.page.evaluate(_SHOWN))

    def changed(self, before: str) -> None:
        """Wait for something else to be shown."""
        self.page.wait_for_function(_CHANGED, arg=before)

    def to_the_end_of_the_round(self) -> int:
        """Play until the round is over; returns the number of moves."""
        made = 0
        while self.may_move():
            self.move()
            made += 1
        return made

    def stand_up(self) -> None:
        """Leave the table, whether the match is over or not."""
        asks = self.page.get_by_role("button", name="Stand up…")
        asks.or_(self.page.get_by_role("button", name="Another game")).click()
        yes = self.page.get_by_role("dialog").get_by_role("button", name="Stand up")
        yes.or_(self.page.get_by_role("button", name="Sit down")).wait_for()
        if yes.count():
            yes.click()
        self.page.get_by_role("button", name="Sit down").wait_for()


def sit_down(
    look: BrowserWindow, game: str, name: str = "", *, against: str = "", **settings: int
) -> PagePlayer:
    """Take a seat; the page suggests the opponents, the name and the settings not given."""
    page = look.to(f"#/play/{game}")
    if page.get_by_role("group", name="Your turn").count():
        PagePlayer(page).stand_up()  # what a test before this one has left
    if name:
        page.get_by_label("Your name").fill(name)
    if against:
        for opponent in page.locator("select").all():
            opponent.select_option(against)
    for label, value in settings.items():
        page.get_by_label(label).fill(str(value))
    page.get_by_role("button", name="Sit down").click()
    page.get_by_label("Pace").wait_for()
    return PagePlayer(page)
