// A bot for all of our games. It plays Ace-King-Queen by watching the other seat, and the
// others at random.
package main

import (
	"log"
	"math/rand"
)

var games = []string{"ace_king_queen", "gin_rummy", "high_low", "three_card_poker", "blackjack"}

func main() {
	log.SetFlags(0)
	if err := Play(games, newPlayer); err != nil {
		log.Fatal(err)
	}
}

func newPlayer(match Match) Player {
	if match.Game == "ace_king_queen" {
		return newWatcher(match.Seat)
	}
	return anything{}
}

// anything plays every game with random legal answers.
type anything struct{}

func (anything) Hear(News)             {}
func (anything) Decide(q Question) any { return AnyLegal(q.Legal) }

// watcher plays Ace-King-Queen. After every hand it is told both cards. It counts what the
// other seat does with each card, and gives the answer that pays best against that.
type watcher struct {
	seat  int
	bets  map[string]*habit // how often the other seat bets with each card
	calls map[string]*habit // how often it calls with each card
}

var heights = map[string]int{"A": 3, "K": 2, "Q": 1}

// blur is in chips. If two answers differ by less, the watcher decides at random. Against
// the equilibrium it then mixes as the equilibrium does.
const blur = 0.2

func newWatcher(seat int) *watcher {
	// Before the first hand we expect the other seat to play the equilibrium.
	return &watcher{
		seat:  seat,
		bets:  map[string]*habit{"A": expect(1), "K": expect(0), "Q": expect(1. / 3)},
		calls: map[string]*habit{"A": expect(1), "K": expect(1. / 3), "Q": expect(0)},
	}
}

func (w *watcher) Hear(news News) {
	var hand struct {
		Bettor   int
		Cards    []string
		Open     string
		Response string // empty after a check
	}
	news.Into(&hand)
	card := hand.Cards[1-w.seat]
	if hand.Bettor != w.seat {
		w.bets[card].note(hand.Open == "bet")
	} else if hand.Response != "" {
		w.calls[card].note(hand.Response == "call")
	}
}

func (w *watcher) Decide(question Question) any {
	var q struct{ Card string }
	question.Into(&q)
	if question.Kind == "open" {
		return either(w.worthOfBet(q.Card), "bet", "check")
	}
	return either(w.worthOfCall(q.Card), "call", "fold")
}

// worthOfBet is how much more a bet wins than a check, in chips.
func (w *watcher) worthOfBet(card string) (chips float64) {
	for other, calls := range w.calls {
		if other == card {
			continue
		}
		wins := sign(heights[card] - heights[other])
		called := calls.share()
		chips += (called*2*wins + (1 - called) - wins) / 2 // two cards, equally likely
	}
	return chips
}

// worthOfCall is how much more a call wins than a fold, which loses the ante.
func (w *watcher) worthOfCall(card string) (chips float64) {
	total := 0.0
	for other, bets := range w.bets {
		if other != card {
			wins := sign(heights[card] - heights[other])
			chips += bets.share() * (2*wins + 1)
			total += bets.share()
		}
	}
	return chips / total
}

func either(worth float64, yes, no string) string {
	if worth > blur*(2*rand.Float64()-1) {
		return yes
	}
	return no
}

func sign(difference int) float64 {
	if difference > 0 {
		return 1
	}
	return -1
}

// habit counts how often a player does something when it can.
type habit struct{ done, seen float64 }

// expect starts a habit with a few imagined hands.
func expect(share float64) *habit {
	const hands = 6
	return &habit{share * hands, hands}
}

func (h *habit) note(done bool) {
	h.seen++
	if done {
		h.done++
	}
}

// share is from 0 to 1, and never quite 0.
func (h *habit) share() float64 { return (h.done + 0.01) / (h.seen + 0.02) }
