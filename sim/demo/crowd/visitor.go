package crowd

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Kinds of visitors.
const (
	Patient  = "patient"
	Leaving  = "leaving"
	Early    = "early"
	Parallel = "parallel"
	Bot      = "bot"
)

// Ways of waiting.
const (
	Script = "script" // the page once, then the small status, then a stream if offered
	Plain  = "plain"  // the page again and again, by its Refresh header
	App    = "app"    // JSON
)

// How a visitor's story ended.
const (
	Done    = "done"    // was inside and left
	GaveUp  = "gave up" // left the line
	Removed = "removed" // was inside, then got the waiting page
	Still   = ""        // was still there when the crowd stopped
)

// Visitor is what one simulated visitor went through, as far as he knows. All times are
// microseconds since [Config.Start]; zero means never.
type Visitor struct {
	Number int    `json:"visitor"` // from 1
	Kind   string `json:"kind"`
	Way    string `json:"way"`
	// Joined is when he sent the request that got him his place (the last one that he sent
	// without a ticket), Placed when its answer came. The gateway's own moment of arrival
	// lies between them.
	Joined int64 `json:"joined"`
	Placed int64 `json:"placed"`
	// Polls are the waiting answers since then.
	Polls []Poll `json:"polls,omitempty"`
	// Ref is the reference code that the page's script was told last.
	Ref string `json:"ref,omitempty"`
	// Told is the first forecast of his wait that he was shown, in seconds, ToldAt when; zero
	// means that there was none.
	Told   int   `json:"told,omitempty"`
	ToldAt int64 `json:"told_at,omitempty"`
	// Admitted is when the first answer of the origin came, Asked when its request was sent.
	Admitted int64  `json:"admitted,omitempty"`
	Asked    int64  `json:"asked,omitempty"`
	Ended    int64  `json:"ended,omitempty"`
	End      string `json:"end,omitempty"`
	// Anew counts the requests without a ticket after the first: his cookies were lost, or
	// he keeps none.
	Anew int `json:"anew,omitempty"`
	// Lost counts the Set-Cookie headers that did not arrive.
	Lost int `json:"lost,omitempty"`
	// Worse are the moments when his shown place moved back.
	Worse []Worse `json:"worse,omitempty"`
	// PlaceLost is when he was told that his place is lost, while he held a ticket.
	PlaceLost []int64 `json:"place_lost,omitempty"`
	// Thrown are the waiting answers to requests that he sent with a ticket after an answer
	// had come that let him in, or a status that said so.
	Thrown []Thrown `json:"thrown,omitempty"`
}

// Poll is one waiting answer. With Stream it is a stream that was open from Sent to
// Answered.
type Poll struct {
	Sent, Answered int64
	Refresh        int64 // µs that he was told to wait; 0 when he was told nothing
	Ahead          int   // people ahead as shown; -1 when not told
	Stream         bool
}

// MarshalJSON writes a poll as a short array: there are very many.
func (p Poll) MarshalJSON() ([]byte, error) {
	stream := int64(0)
	if p.Stream {
		stream = 1
	}
	return json.Marshal([5]int64{p.Sent, p.Answered, p.Refresh, int64(p.Ahead), stream})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Poll) UnmarshalJSON(b []byte) error {
	var a [5]int64
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	*p = Poll{a[0], a[1], a[2], int(a[3]), a[4] == 1}
	return nil
}

// Worse is a shown place that moved back.
type Worse struct {
	At       int64 `json:"us"`
	From, To int
}

// Thrown is a waiting answer after admission. Last is when the visitor sent his last
// request that was answered as an admitted one.
type Thrown struct {
	Last     int64  `json:"last"`
	Sent     int64  `json:"sent"`
	Answered int64  `json:"answered"`
	To       string `json:"to,omitempty"` // where Config.Route sent it
}

// person is a visitor alive.
type person struct {
	Visitor
	rnd    *rand.Rand
	due    time.Duration // of the next step, since start
	cookie string        // "name=value"; empty means none
	pass   string        // "name=value"; an old one is sent on, as by a visitor whose clock is slow
	best   int           // smallest place shown; -1 means none yet
	bestAt int64         // when it was
	leaves time.Duration // when he gives up; 0 means never
	told   time.Duration // the interval of the last answer
	pages  int           // requests still to make inside
	last   int64         // when he sent the last request that the origin answered
	asking bool          // the script knows that it is admitted, or begins: load the page
	known  int64         // when the last answer came that let him in or said so
	sure   int64         // when he sent the status request that said "admitted"; 0 if none did
	inside bool
	inLine bool // counts as waiting
	failed int  // failures in a row
	stream bool // holds one open, or is about to
}

func newPerson(cfg *Config, number int) *person {
	p := &person{rnd: rand.New(rand.NewPCG(cfg.Seed, uint64(number))), best: -1, asking: true}
	p.Number, p.Kind, p.Way = number, Patient, Script
	x := p.rnd.Float64()
	for _, k := range []struct {
		kind  string
		share float64
	}{{Leaving, cfg.Mix.Leaving}, {Early, cfg.Mix.Early}, {Parallel, cfg.Mix.Parallel}, {Bot, cfg.Mix.Bots}} {
		if x < k.share {
			p.Kind = k.kind
			break
		}
		x -= k.share
	}
	switch x := p.rnd.Float64(); {
	case x < cfg.Mix.Plain:
		p.Way = Plain
	case x < cfg.Mix.Plain+cfg.Mix.Apps:
		p.Way = App
	}
	if p.Kind == Bot {
		p.Way = Plain
	}
	p.pages = 1 + int(math.Round(p.rnd.Float64()*2*float64(cfg.Pages-1)))
	return p
}

// place takes note of a shown place: of an answer that came now to a request sent then.
// Those before a lost cookie do not count: the ticket that remembered them is gone. Nor does
// a worse place whose request was under way when the better one came: answers to requests
// at once overtake each other.
func (p *person) place(now, sent int64, ahead int) {
	if ahead < 0 {
		return
	}
	if p.best >= 0 && ahead > p.best && sent >= p.bestAt {
		p.Worse = append(p.Worse, Worse{now, p.best, ahead})
	}
	if p.best < 0 || ahead < p.best {
		p.best, p.bestAt = ahead, now
	}
}

// seen is what the page's script adds to a question: the place on the screen.
func (p *person) seen() string {
	if p.best < 0 {
		return ""
	}
	return "." + strconv.Itoa(p.best)
}

// around returns d, half to one and a half times as long.
func (p *person) around(d time.Duration) time.Duration {
	return time.Duration((0.5 + p.rnd.Float64()) * float64(d))
}
