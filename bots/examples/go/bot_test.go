package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

func news(t *testing.T, text string) (n News) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func question(t *testing.T, text string) (q Question) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTheWatcherBluffsWhoeverFoldsKings(t *testing.T) {
	w := newWatcher(0)
	for i := 0; i < 100; i++ {
		w.Hear(news(t, `{"kind":"hand_over","bettor":0,"cards":["Q","K"],"open":"bet","response":"fold"}`))
	}
	open := question(t, `{"kind":"open","card":"Q","legal":["bet","check"]}`)
	if got := w.Decide(open); got != "bet" {
		t.Errorf("%v with a queen", got)
	}
}

func TestTheWatcherCallsWhoeverBluffs(t *testing.T) {
	w := newWatcher(1)
	for i := 0; i < 100; i++ {
		w.Hear(news(t, `{"kind":"hand_over","bettor":0,"cards":["Q","A"],"open":"bet","response":"call"}`))
	}
	respond := question(t, `{"kind":"respond","card":"K","legal":["call","fold"]}`)
	if got := w.Decide(respond); got != "call" {
		t.Errorf("%v with a king", got)
	}
}

func TestAnyLegalTakesEveryAnswer(t *testing.T) {
	for _, test := range []struct {
		legal string
		want  []string
	}{
		{`["quit",2,4]`, []string{`"quit"`, `2`, `4`}},
		{`[null]`, []string{`null`}},
		{`{"min":5,"max":7}`, []string{`5`, `6`, `7`}},
		{`{"min":5,"max":5}`, []string{`5`}},
	} {
		q := question(t, fmt.Sprintf(`{"kind":"x","legal":%s}`, test.legal))
		left := map[string]bool{}
		for _, answer := range test.want {
			left[answer] = true
		}
		for i := 0; i < 1000; i++ {
			answer, err := json.Marshal(AnyLegal(q.Legal))
			if err != nil {
				t.Fatal(err)
			}
			delete(left, string(answer))
		}
		if len(left) > 0 {
			t.Errorf("%s: never %v", test.legal, left)
		}
	}
}

func TestAFrameIsAMessageOrAnArray(t *testing.T) {
	for frame, want := range map[string]int{`{"type":"a"}`: 1, ` [{"type":"a"},{"type":"b"}]`: 2, `[]`: 0} {
		messages, err := split([]byte(frame))
		if err != nil || len(messages) != want {
			t.Errorf("%s: %d messages, %v", frame, len(messages), err)
		}
	}
}
