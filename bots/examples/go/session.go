// The session with the arena: one WebSocket with JSON in text frames. It connects again when
// the connection is lost. It knows no game; bot.go has the players.
package main

import (
	"bytes"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

const (
	patience   = 60 * time.Second // how long to try to connect
	silence    = 30 * time.Second // an arena answers hello within this time
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second

	replaced, unwelcome = 4000, 4001 // the arena's own close codes
)

// Match is the arena's message about a new match.
type Match struct {
	ID       string         `json:"match"`
	Game     string         `json:"game"`
	Seat     int            `json:"seat"`
	Seats    []string       `json:"seats"` // the names, by seat
	Settings map[string]any `json:"settings"`
}

// Player plays one match. It is forgotten when the match is over.
type Player interface {
	// Hear takes note of what has happened. All news come before the next question.
	Hear(news News)
	// Decide returns one of the question's legal answers.
	Decide(question Question) any
}

// News is one thing that has happened. Into reads the fields of its kind.
type News struct {
	Kind string
	fields
}

// Question is one thing to decide. Into reads the fields of its kind.
type Question struct {
	Kind  string
	Legal Legal
	fields
}

// Legal holds all legal answers: the Choices, or every number from Min to Max if there are none.
type Legal struct {
	Choices  []json.RawMessage
	Min, Max int64
}

// AnyLegal picks one of the legal answers at random.
func AnyLegal(legal Legal) any {
	if len(legal.Choices) > 0 {
		return legal.Choices[rand.Intn(len(legal.Choices))]
	}
	return legal.Min + rand.Int63n(legal.Max-legal.Min+1)
}

// Play plays until the arena closes. An error says why the bot cannot go on.
func Play(games []string, newPlayer func(Match) Player) error {
	address := getenv("ARENA_URL", "ws://127.0.0.1:7700")
	if u, err := url.Parse(address); err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return fmt.Errorf("expected ARENA_URL to be like ws://host:port, got %q", address)
	}
	rand.Seed(time.Now().UnixNano())
	s := &session{games: games, newPlayer: newPlayer, seats: map[string]*seat{}, heard: time.Now()}
	go s.leaveAtSignal()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		welcome, err := s.connection(address)
		var end fatal
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &end):
			return end.error
		case errors.Is(err, errNoSession):
			s.resume, s.seats = "", map[string]*seat{}
		case errors.As(err, &closed):
			switch closed.Code {
			case websocket.CloseNormalClosure:
				return nil
			case websocket.CloseProtocolError, websocket.CloseMessageTooBig, replaced, unwelcome:
				return fmt.Errorf("the arena closed the connection: %d %s", closed.Code, closed.Text)
			}
		}
		if s.hasLeft() {
			return nil
		}
		if time.Since(s.heard) > patience {
			return fmt.Errorf("no arena at %s: %w", address, err)
		}
		if welcome {
			pause = firstPause
		}
		time.Sleep(pause)
	}
}

// fatal wraps an error after which it is no use to connect again.
type fatal struct{ error }

var errNoSession = errors.New("the arena does not know the session any more")

type session struct {
	games     []string
	newPlayer func(Match) Player
	seats     map[string]*seat // by the match's id
	resume    string           // the session of the latest welcome
	heard     time.Time        // when the arena was last connected

	sync.Mutex                 // held while a frame is handled, and by leaveAtSignal
	conn       *websocket.Conn // nil until welcome
	goodbye    object          // what to say when it leaves; nil once it is said
	leaving    bool            // after the matches that are on
}

// seat is a seat in a match. It stores its latest answer, because the arena repeats the
// question if the connection was lost before the answer arrived.
type seat struct {
	player Player
	ask    string
	value  any
}

// connection serves one connection until it ends. It returns whether the arena said welcome.
func (s *session) connection(address string) (welcome bool, err error) {
	dialer, through := *websocket.DefaultDialer, (*url.URL)(nil)
	dialer.Proxy = func(request *http.Request) (proxy *url.URL, err error) {
		through, err = http.ProxyFromEnvironment(request) // none to this machine
		return through, err
	}
	conn, _, err := dialer.Dial(address, nil)
	if err != nil && through != nil {
		err = fmt.Errorf("through the proxy %s: %w", through.Host, err)
	}
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer func() {
		if r := recover(); r != nil {
			log.Printf("%v\n%s", r, debug.Stack())
			reason := websocket.FormatCloseMessage(websocket.CloseInternalServerErr, "failed: the bot panicked")
			conn.WriteControl(websocket.CloseMessage, reason, time.Now().Add(time.Second))
			err = fatal{fmt.Errorf("the bot panicked: %v", r)}
		}
		s.Lock()
		defer s.Unlock()
		if welcome = s.conn != nil; welcome {
			s.heard, s.conn = time.Now(), nil
		}
	}()
	if err := conn.WriteJSON(s.hello()); err != nil {
		return false, err
	}
	for deadline := time.Now().Add(silence); ; deadline = (time.Time{}) { // only for the first frame
		conn.SetReadDeadline(deadline)
		_, frame, err := conn.ReadMessage()
		if err == nil {
			err = s.handle(conn, frame)
		}
		if err != nil {
			return false, err
		}
	}
}

// handle handles a frame, and sends the answers to it.
func (s *session) handle(conn *websocket.Conn, frame []byte) error {
	s.Lock()
	defer s.Unlock()
	messages, err := split(frame)
	if err != nil {
		return fatal{err}
	}
	var answers []any
	for _, m := range messages {
		if m.Type == "welcome" {
			s.conn = conn
		}
		answer, err := s.reply(m)
		if err != nil {
			return err
		}
		if answer != nil {
			answers = append(answers, answer)
		}
	}
	return send(conn, append(answers, s.parting()...))
}

// send sends all answers to one frame in one frame.
func send(conn *websocket.Conn, answers []any) error {
	switch len(answers) {
	case 0:
		return nil
	case 1:
		return conn.WriteJSON(answers[0])
	default:
		return conn.WriteJSON(answers)
	}
}

// leaveAtSignal waits for Ctrl-C or SIGTERM. Then the bot leaves after the matches that are on,
// or at once without a connection.
func (s *session) leaveAtSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	signal.Reset() // the next one ends the program
	s.Lock()       // once no player is deciding
	defer s.Unlock()
	if s.conn == nil {
		os.Exit(130)
	}
	s.leaving = true
	log.Printf("matches to finish: %d; Ctrl-C again leaves now", len(s.seats))
	send(s.conn, s.parting()) // if the connection is lost, the next read says so
}

// parting returns the goodbye if it is due, once per connection. An arena that does not know
// finish hears nothing while a match is on.
func (s *session) parting() []any {
	if !s.leaving || s.goodbye == nil || s.goodbye["finish"] == nil && len(s.seats) > 0 {
		return nil
	}
	goodbye := s.goodbye
	s.goodbye = nil
	return []any{goodbye}
}

// hasLeft says whether the bot need not connect again.
func (s *session) hasLeft() bool {
	s.Lock()
	defer s.Unlock()
	return s.leaving && len(s.seats) == 0
}

type object map[string]any

func (s *session) hello() object {
	hello := object{
		"type": "hello", "protocol": 1, "name": getenv("ARENA_NAME", "go"), "games": s.games,
		"tables": 8, "batch": true, "client": "card-arena example (go)",
	}
	if token := os.Getenv("ARENA_TOKEN"); token != "" {
		hello["token"] = token
	}
	if s.resume != "" {
		hello["resume"] = s.resume
	}
	return hello
}

// message is any message of the arena. Most fields are there only in some types.
type message struct {
	Match
	Type    string `json:"type"`
	Ask     string `json:"ask"`
	News    []News `json:"news"`
	Session string `json:"session"`
	Finish  bool   `json:"finish"`
	Code    string `json:"code"`
	Text    string `json:"text"`
	Legal   Legal  `json:"legal"`
	// How the bot stands in a competition that is over; nil in the `over` of a match.
	Standing *struct {
		Text string `json:"text"`
	} `json:"standing"`
	raw json.RawMessage
}

// reply handles a message. It returns the message to send, or nil.
func (s *session) reply(m message) (any, error) {
	c := s.seats[m.ID]
	switch m.Type {
	case "welcome":
		s.resume, s.goodbye = m.Session, object{"type": "goodbye"}
		if m.Finish {
			s.goodbye["finish"] = true
		}
	case "match":
		if c == nil { // otherwise the arena repeats it after a reconnect
			s.seats[m.ID] = &seat{player: s.newPlayer(m.Match)}
		}
		return object{"type": "ready", "match": m.ID, "nonce": nonce()}, nil
	case "ask":
		if c == nil {
			return nil, fatal{fmt.Errorf("asked in match %q, which it has not dealt", m.ID)}
		}
		if m.Ask != c.ask {
			question := Question{}
			if err := json.Unmarshal(m.raw, &question); err != nil {
				return nil, fatal{err}
			}
			c.hear(m.News)
			c.value, c.ask = c.player.Decide(question), m.Ask
		}
		return c.answer(m.ID), nil
	case "past":
		if c != nil {
			c.hear(m.News)
		}
	case "over":
		if m.Standing != nil {
			log.Print(m.Standing.Text)
		}
		if c != nil {
			c.hear(m.News)
			delete(s.seats, m.ID)
		}
	case "refused":
		if c != nil && m.Ask == c.ask && m.Ask != "" { // practice mode: answer again
			log.Printf("%s: %s", m.Code, m.Text)
			c.value = AnyLegal(m.Legal)
			return c.answer(m.ID), nil
		}
		if m.Code == "session" {
			return nil, errNoSession
		}
		return nil, fatal{fmt.Errorf("%s: %s", m.Code, m.Text)}
	default:
		panic(fmt.Sprintf("version 1 has no message of type %q", m.Type))
	}
	return nil, nil
}

func (c *seat) hear(news []News) {
	for _, n := range news {
		c.player.Hear(n)
	}
}

func (c *seat) answer(match string) object {
	return object{"type": "answer", "match": match, "ask": c.ask, "value": c.value}
}

// split reads a frame: one message, or an array of them.
func split(frame []byte) (messages []message, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(frame), []byte("[")) {
		frame = bytes.Join([][]byte{[]byte("["), frame, []byte("]")}, nil)
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(frame, &raws); err != nil {
		return nil, err
	}
	messages = make([]message, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal(raw, &messages[i]); err != nil {
			return nil, err
		}
		messages[i].raw = raw
	}
	return messages, nil
}

// fields is the JSON of a question or of news.
type fields struct{ raw json.RawMessage }

// Into reads the fields into a struct. It panics if they do not fit, which is a bug of the bot.
func (f fields) Into(value any) {
	if err := json.Unmarshal(f.raw, value); err != nil {
		panic(err)
	}
}

// UnmarshalJSON stores the fields for Into, and reads only what all kinds have.
func (n *News) UnmarshalJSON(data []byte) error {
	var head struct{ Kind string }
	err := json.Unmarshal(data, &head)
	n.Kind, n.raw = head.Kind, append(json.RawMessage{}, data...)
	return err
}

// UnmarshalJSON stores the fields for Into, and reads only what all kinds have.
func (q *Question) UnmarshalJSON(data []byte) error {
	var head struct {
		Kind  string
		Legal Legal
	}
	err := json.Unmarshal(data, &head)
	q.Kind, q.Legal, q.raw = head.Kind, head.Legal, append(json.RawMessage{}, data...)
	return err
}

// UnmarshalJSON reads a list of answers, or a map with min and max.
func (l *Legal) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, &l.Choices)
	}
	var span struct{ Min, Max int64 }
	err := json.Unmarshal(data, &span)
	l.Min, l.Max = span.Min, span.Max
	return err
}

func nonce() string {
	random := make([]byte, 16)
	if _, err := crand.Read(random); err != nil {
		panic(err)
	}
	return hex.EncodeToString(random)
}

func getenv(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}
