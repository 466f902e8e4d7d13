"""The questions, answers and news of all games but blackjack in words, with the bots' names.

Cards stand as they do on the wire, `As Td 9h`, but for the three of Ace-King-Queen. Nothing here
knows what happened before: `arena/records/narrative.py` puts the lines together. The words of
blackjack are those of B13, in `arena/records/blackjack_script.py`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from protocol import ace_king_queen as akq
from protocol import gin_rummy as gin
from protocol import high_low
from protocol import three_card_poker as tcp
from protocol.vocabulary import News, Question

__all__ = ["actor", "answered", "asked", "heard", "legal", "scores"]

_COURT = {"A": "Ace", "K": "King", "Q": "Queen"}
_GIN_ENDS: dict[gin.Reason, str] = {
    "gin": "gin",
    "knock": "a knock",
    "undercut": "a knock that was undercut",
    "tie": "a knock that met equal deadwood",
    "stock": "an empty stock: a tie",
    "turns": "too many turns: a tie",
}


def asked(who: str, question: Question[Any]) -> str:
    """What a seat sees when it must decide: `ann has the King`."""
    match question:
        case akq.Open() | akq.Respond():
            return f"{who} has the {_COURT[question.card]}"
        case gin.Offer():
            return f"{who} has {_cards(question.hand)} and is offered {question.upcard}"
        case gin.Draw():
            return f"{who} has {_cards(question.hand)}, on the pile lies {question.discard}"
        case gin.Turn():
            return f"{who} has drawn {question.drawn} to {_cards(question.hand[:-1])}"
        case gin.Melds():
            return f"{who} has {_cards(question.hand)} and may meld"
        case high_low.Swap() | high_low.Bid():
            return f"{who} has {question.card}, the dealer-card is {question.dealer_card}"
        case tcp.Ante():
            return f"{who} has {question.cash:,} in cash"
        case tcp.Play():
            return f"{who} has {_cards(question.hand)}, {tcp.category(question.hand)}"
        case _:
            return f"{who} is asked to {question.kind}"


def answered(question: Question[Any], answer: Any) -> str:
    """The answer of a seat, to stand behind `asked`: `bets`."""
    match question:
        case akq.Open() | akq.Respond() | high_low.Swap() | tcp.Play():
            return f"{answer}s"
        case gin.Offer():
            return "takes it" if answer == "take" else "passes"
        case gin.Draw():
            return "draws from the stock" if answer == "stock" else "takes it"
        case gin.Turn():
            if not answer.knock:
                return f"discards {answer.discard}"
            return f"knocks, discards {answer.discard}, {_melding(answer.melds)}"
        case gin.Melds():
            return _melding(answer)
        case high_low.Bid():
            return "quits" if answer == "quit" else f"bids {answer}"
        case tcp.Ante():
            return f"antes {answer:,}"
        case _:
            return f"answers {answer}"


def legal(question: Question[Any]) -> str:
    """The legal answers, in brief."""
    if not isinstance(question, gin.Turn):
        return question.legal_text()
    knocks = _cards(answer.discard for answer in question.legal if answer.knock)
    return f"any discard, a knock with {knocks}" if knocks else "any discard, no knock"


def heard(news: News, names: Sequence[str], to: Iterable[int]) -> Iterator[str]:
    """The lines for news to the seats `to`; `names` are all bots' names, by seat."""
    match news:
        case akq.HandOver():
            yield from _hand_over(news, names)
        case gin.Dealt():
            for seat in to:
                yield f"{names[seat]} is dealt {_cards(news.hand)}"
        case gin.Offered():
            yield f"{names[news.seat]} {'takes' if news.took else 'passes'} the up-card"
        case gin.TurnTaken():
            drew = "draws from the stock" if news.card is None else f"takes {news.card}"
            yield f"{names[news.seat]} {drew} and discards {news.discarded}"
        case gin.RoundOver():
            yield from _gin_round(news, names)
        case gin.GameOver():
            won = "nobody" if news.winner is None else names[news.winner]
            scored, games = _each(names, news.scores), _each(names, news.games)
            yield f"{won} wins the game, {scored}; games: {games}"
        case high_low.Dealt():
            for seat in to:
                yield f"{names[seat]} is dealt {news.card}"
        case high_low.Swapped():
            does = "swaps" if news.swapped else "keeps its card"
            yield f"{names[news.seat]} {does}, the dealer-card is {news.dealer_card}"
        case high_low.BidMade():
            yield f"{names[news.seat]} {'quits' if news.bid == 'quit' else f'bids {news.bid}'}"
        case high_low.RoundOver():
            yield from _high_low_round(news, names)
        case tcp.RoundOver():
            yield from _poker_round(news, names[0])
        case _:
            yield f"told: {news.kind}"


def actor(news: News) -> int | None:
    """The seat whose decision the news repeats, None if it repeats none."""
    match news:
        case gin.Offered() | gin.TurnTaken() | high_low.Swapped() | high_low.BidMade():
            return news.seat
        case _:
            return None


def scores(names: Sequence[str], values: Sequence[int]) -> str:
    """`ann +3, ben -3`."""
    return ", ".join(f"{name} {value:+,}" for name, value in zip(names, values, strict=True))


def _each(names: Sequence[str], values: Sequence[int]) -> str:
    """`ann 48, ben 0`."""
    return ", ".join(f"{name} {value:,}" for name, value in zip(names, values, strict=True))


def _cards(cards: Iterable[str]) -> str:
    return " ".join(cards)


def _melding(melds: Sequence[Sequence[str]] | None) -> str:
    if melds is None:
        return "leaves the melds to the referee"
    return f"melds {_groups(melds)}"


def _groups(melds: Iterable[Sequence[str]]) -> str:
    return ", ".join(map(_cards, melds)) or "nothing"


def _hand_over(news: akq.HandOver, names: Sequence[str]) -> Iterator[str]:
    had = " and ".join(
        f"{name} the {_COURT[card]}" for name, card in zip(names, news.cards, strict=True)
    )
    bettor, caller = names[news.bettor], names[1 - news.bettor]
    did = f"{bettor} {news.open}s"
    if news.response is not None:
        did += f", {caller} {news.response}s"
    yield f"{did}; shown are {had}"
    yield f"paid: {scores(names, news.payoffs)}; scores: {scores(names, news.scores)}"


def _gin_round(news: gin.RoundOver, names: Sequence[str]) -> Iterator[str]:
    by = "" if news.knocker is None else f" of {names[news.knocker]}"
    yield f"the round ends with {_GIN_ENDS[news.reason].replace('a knock', f'a knock{by}', 1)}"
    for name, hand, melds in zip(names, news.hands, news.melds, strict=True):
        melded = {card for meld in melds for card in meld}
        rest = [card for card in hand if card not in melded]
        yield f"{name} has {_groups(melds)} and {_cards(rest) or 'nothing'} unmelded"
    if news.layoffs and news.knocker is not None:
        defender = names[1 - news.knocker]
        yield f"{defender} lays off {_cards(card for card, _ in news.layoffs)}"
    yield f"points: {_each(names, news.points)}; in the game: {_each(names, news.scores)}"


def _high_low_round(news: high_low.RoundOver, names: Sequence[str]) -> Iterator[str]:
    shown = ", ".join(
        f"{name} {card}" for name, card in zip(names, news.cards, strict=True) if card is not None
    )
    yield f"shown are {shown}; the last bid is {news.last_bid}" if shown else "all quit"
    yield f"paid: {scores(names, news.payoffs)}; scores: {scores(names, news.scores)}"


def _poker_round(news: tcp.RoundOver, who: str) -> Iterator[str]:
    strength = tcp.category(news.dealer)
    yield f"the dealer has {_cards(news.dealer)}, {strength}"
    match news.outcome:
        case -1:
            what = f"{who} loses the ante"
        case 1:
            what = f"the dealer does not qualify, {who} wins the ante"
        case 2:
            what = f"{who} wins two antes"
        case -2:
            what = f"{who} loses two antes"
        case _:
            what = "a tie"
    yield f"{what}: {who} has {news.cash:,} in cash"
