package judge_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

const (
	second = int64(1_000_000)
	asks   = 2*second + 100_000 // pause between two looks at the line
)

// fair is a case in which every promise is kept: a hundred visitors come, one every 200 ms;
// ten may be inside at once, for 5 s after their last request, so that one gets in about
// every second and a half. Everybody asks every two seconds.
func fair() judge.Case {
	c := judge.Case{Active: 10, PerMinute: 60, SessionDuration: 5 * time.Second}
	for i := range int64(100) {
		joined := 1 + i*second/5
		enters := joined
		v := crowd.Visitor{Number: int(i) + 1, Kind: crowd.Patient, Way: crowd.Script, Joined: joined, Placed: joined + 1000}
		if i >= 10 {
			enters = 12*second + (i-10)*second*3/2
			next := enters
			for ; next-asks > joined; next -= asks {
			}
			for at := joined; at < enters; at, next = next, next+asks {
				v.Polls = append(v.Polls, crowd.Poll{Sent: at, Answered: at + 1000, Refresh: next - at - 1000, Ahead: int(i)})
			}
		}
		v.Asked, v.Admitted = enters, enters+2000
		v.Ended, v.End = enters+4*second+2000, crowd.Done
		c.Visitors = append(c.Visitors, v)
		for _, after := range []int64{0, 4 * second} {
			c.Requests = append(c.Requests, shop.Request{Seen: enters + after + 1000, Sent: enters + after, Visitor: fmt.Sprint(i + 1), Session: fmt.Sprintf("s%d", i+1), Method: "GET", Path: "/"})
		}
	}
	slices.SortFunc(c.Requests, func(a, b shop.Request) int { return int(a.Seen - b.Seen) })
	return c
}

func find(r judge.Report, rule string) judge.Finding {
	i := slices.IndexFunc(r.Findings, func(f judge.Finding) bool { return f.Rule == rule })
	return r.Findings[i]
}

func TestFairRunIsFair(t *testing.T) {
	r := fair().Judge()
	if !r.OK() {
		var b bytes.Buffer
		r.WriteTable(&b)
		t.Fatalf("violations in a fair run:\n%s", b.String())
	}
	if f := find(r, "active sessions"); !strings.HasPrefix(f.Seen, "peak 10 ") {
		t.Errorf("the fair run does not reach its limit: %s", f.Seen)
	}
}

func visitor(c *judge.Case, n int) *crowd.Visitor { return &c.Visitors[n-1] }

// Each of these breaks one promise and no other.
func TestBrokenPromises(t *testing.T) {
	for _, test := range []struct {
		name, rule, example string
		breaks              func(*judge.Case)
	}{
		{"too many at once", "active sessions", "is number 8", func(c *judge.Case) { c.Active = 7 }},
		{"too many after the limit was lowered", "active sessions", "is number 6", func(c *judge.Case) {
			c.Changes = []judge.Change{{At: 60 * second, Active: 5, PerMinute: 60}}
		}},
		{"too fast after the rate was lowered", "new sessions", "in the 60 s that end at", func(c *judge.Case) {
			c.Changes = []judge.Change{{At: 60 * second, Active: 10, PerMinute: 30}}
		}},
		{"no answer of a node that is up", "answers", "visitor 3 at 9.000 s", func(c *judge.Case) {
			c.Outages = []judge.Outage{{From: 8 * second, Until: 10 * second, To: "other"}}
			c.Failures = []crowd.Failure{{At: 9 * second, Visitor: 3, What: "refused", To: "this"}}
		}},
		{"too many in a minute", "new sessions", "in the 60 s that end at", func(c *judge.Case) { c.PerMinute = 40 }},
		{"a session without a ticket's owner", "tickets", "was also used by visitor 31", func(c *judge.Case) {
			for i := range c.Requests {
				if c.Requests[i].Visitor == "31" {
					c.Requests[i].Session = "s30"
				}
			}
			visitor(c, 31).Admitted = 0
		}},
		{"two sessions for one ticket", "tickets", "visitor 30 has the sessions s30 and again", func(c *judge.Case) {
			last := slices.IndexFunc(c.Requests, func(q shop.Request) bool { return q.Visitor == "30" && q.Seen > visitor(c, 30).Admitted })
			c.Requests[last].Session = "again"
			c.Active = 100
		}},
		{"a session that comes back", "tickets", "s5 came back", func(c *judge.Case) {
			c.Requests = append(c.Requests, shop.Request{Seen: 150 * second, Sent: 150 * second, Visitor: "5", Session: "s5"})
		}},
		{"passed by a later one", "order", "visitor 51, waiting since 10.000 s, was passed by visitor 60 (came 11.800 s)", func(c *judge.Case) {
			swap(c, 51, 60)
		}},
		{"starved at the front", "order", "visitor 40", func(c *judge.Case) {
			v := visitor(c, 40)
			for at := v.Asked; at < 160*second; at += asks {
				v.Polls = append(v.Polls, crowd.Poll{Sent: at, Answered: at + 1000, Refresh: 2 * second})
			}
			v.Admitted, v.Asked, v.End = 0, 0, crowd.Still
			c.Requests = slices.DeleteFunc(c.Requests, func(q shop.Request) bool { return q.Visitor == "40" })
		}},
		{"sent to the back after coming back", "order", "visitor 40, waiting since 7.800 s, was passed", func(c *judge.Case) {
			// He is away for 30 s around his turn, and then told to wait far too long.
			v := visitor(c, 40)
			away := v.Asked - 20*second
			v.Polls = slices.DeleteFunc(v.Polls, func(p crowd.Poll) bool { return p.Sent > away })
			v.Polls = append(v.Polls,
				crowd.Poll{Sent: away + 30*second, Answered: away + 30*second, Refresh: 20 * second},
				crowd.Poll{Sent: away + 50*second, Answered: away + 50*second, Refresh: 20 * second})
			move(c, 40, away+70*second)
		}},
		{"stream that says nothing", "order", "visitor 51", func(c *judge.Case) {
			v := visitor(c, 51)
			first := v.Polls[0]
			v.Polls = []crowd.Poll{first, {Sent: first.Answered, Answered: v.Asked + 20*second, Stream: true}}
			move(c, 51, v.Asked+20*second)
		}},
		{"place moves back", "shown place", "3 ahead and then, at 8.000 s, 4", func(c *judge.Case) {
			visitor(c, 40).Worse = []crowd.Worse{{At: 8 * second, From: 3, To: 4}}
		}},
		{"place lost", "place kept", "visitor 40", func(c *judge.Case) { visitor(c, 40).PlaceLost = []int64{9 * second} }},
		{"thrown out", "sessions last", "4.900 s after his last request", func(c *judge.Case) {
			visitor(c, 40).Thrown = []crowd.Thrown{{Last: second, Sent: 5 * second, Answered: 5*second + 900_000}}
		}},
		{"past the gate", "gate", `/secret by visitor "7"`, func(c *judge.Case) {
			c.Requests = append(c.Requests, shop.Request{Seen: 9 * second, Visitor: "7", Method: "GET", Path: "/secret"})
		}},
		{"no answer", "answers", "visitor 3 at 9.000 s: / says 502", func(c *judge.Case) {
			c.Failures = []crowd.Failure{{At: 9 * second, Visitor: 3, What: "/ says 502"}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fair()
			test.breaks(&c)
			r := c.Judge()
			for _, f := range r.Findings {
				if (f.Violations > 0) != (f.Rule == test.rule) {
					t.Errorf("%s: %d violations %q", f.Rule, f.Violations, f.Examples)
				}
			}
			if f := find(r, test.rule); !strings.Contains(strings.Join(f.Examples, "\n"), test.example) {
				t.Errorf("examples %q, want one with %q", f.Examples, test.example)
			}
		})
	}
}

// move lets a visitor in at another time.
func move(c *judge.Case, n int, at int64) {
	v := &c.Visitors[n-1]
	for i := range c.Requests {
		if q := &c.Requests[i]; q.Visitor == fmt.Sprint(n) {
			q.Seen += at - v.Asked
			q.Sent += at - v.Asked
		}
	}
	v.Asked, v.Admitted = at, at+2000
}

// swap exchanges the times at which two visitors get in, and lets the earlier one ask on.
func swap(c *judge.Case, early, late int) {
	a, b := &c.Visitors[early-1], &c.Visitors[late-1]
	first, second := a.Asked, b.Asked
	for at := first; at < second; at += asks {
		a.Polls = append(a.Polls, crowd.Poll{Sent: at, Answered: at + 1000, Refresh: 2_000_000})
	}
	b.Polls = slices.DeleteFunc(b.Polls, func(p crowd.Poll) bool { return p.Sent >= first })
	move(c, early, second)
	move(c, late, first)
}

// What looks alike and is no violation.
func TestWhatIsAllowed(t *testing.T) {
	for _, test := range []struct {
		name   string
		allows func(*judge.Case)
	}{
		{"as many as before shortly after the limits were lowered", func(c *judge.Case) {
			c.Changes = []judge.Change{{At: 60 * second, Active: 1, PerMinute: 1}, {At: 60*second + 1_000_000, Active: 10, PerMinute: 60}}
		}},
		{"a session that comes back after an outage", func(c *judge.Case) {
			c.Outages = []judge.Outage{{From: 149 * second, Until: 153 * second}}
			last := slices.IndexFunc(c.Requests, func(q shop.Request) bool { return q.Visitor == "100" && q.Seen > visitor(c, 100).Admitted+second })
			at := c.Requests[last].Sent + 9*second
			c.Requests = append(c.Requests, shop.Request{Seen: at, Sent: at, Visitor: "100", Session: "s100"})
		}},
		{"no answer of a node that is down", func(c *judge.Case) {
			c.Outages = []judge.Outage{{From: 8 * second, Until: 10 * second, To: "this"}}
			c.Failures = []crowd.Failure{{At: 9 * second, Visitor: 3, What: "refused", To: "this"}}
		}},
		{"order within the same second", func(c *judge.Case) { swap(c, 51, 55) }},
		{"somebody who was away is passed", func(c *judge.Case) {
			v := &c.Visitors[50]
			v.Polls = slices.DeleteFunc(v.Polls, func(p crowd.Poll) bool { return p.Sent > v.Asked-20*second })
			move(c, 51, v.Asked+40*second)
		}},
		{"somebody with a long interval is passed within it", func(c *judge.Case) {
			v := &c.Visitors[50]
			n := slices.IndexFunc(v.Polls, func(p crowd.Poll) bool { return p.Sent > v.Asked-20*second })
			v.Polls = v.Polls[:n]
			v.Polls[n-1].Refresh = 60 * second
			move(c, 51, v.Polls[n-1].Answered+60*second)
		}},
		{"an early reloader cannot complain", func(c *judge.Case) {
			for i := range 9 {
				c.Visitors[50+i].Kind = crowd.Early
			}
			swap(c, 51, 60)
		}},
		{"a bot may have many sessions", func(c *judge.Case) {
			c.Visitors[29].Kind = crowd.Bot
			c.Active = 100
			for i := range c.Requests {
				if c.Requests[i].Visitor == "30" {
					c.Requests[i].Session = fmt.Sprint("bot", i)
				}
			}
		}},
		{"a waiting page after the session's end", func(c *judge.Case) {
			c.Visitors[39].Thrown = []crowd.Thrown{{Last: second, Sent: 5 * second, Answered: 6 * second}}
		}},
		{"failures while the gateway is down", func(c *judge.Case) {
			c.Outages = []judge.Outage{{From: 9 * second, Until: 10 * second}}
			c.Failures = []crowd.Failure{{At: 9*second + 1}, {At: 10*second + 900_000}}
		}},
		{"a gateway without proofs", func(c *judge.Case) {
			for i := range c.Requests {
				c.Requests[i].Session = ""
			}
		}},
		{"seen late by a busy origin", func(c *judge.Case) {
			// All of the first minute took half a second to reach the origin, those after
			// it no time: by the origin's clock alone 600 began within less than 60 s.
			*c = judge.Case{Active: 10_000, PerMinute: 600, SessionDuration: time.Second}
			for i := range int64(1200) {
				q := shop.Request{Sent: 1 + i*second/10, Session: fmt.Sprint(i), Visitor: fmt.Sprint(i)}
				q.Seen = q.Sent + 1000
				if i < 600 {
					q.Seen += second / 2
				}
				c.Requests = append(c.Requests, q)
			}
		}},
		{"nothing happened", func(c *judge.Case) { *c = judge.Case{} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fair()
			test.allows(&c)
			if r := c.Judge(); !r.OK() {
				var b bytes.Buffer
				r.WriteTable(&b)
				t.Errorf("\n%s", b.String())
			}
		})
	}
}

// The limits are exact to one session and one microsecond.
func TestLimitsAreExact(t *testing.T) {
	at := func(us int64, id int) shop.Request {
		return shop.Request{Seen: us, Session: fmt.Sprint(id), Visitor: fmt.Sprint(id)}
	}
	for _, test := range []struct {
		name         string
		c            judge.Case
		active, rate int
	}{
		{"the next enters as the first leaves", judge.Case{Active: 1, PerMinute: 9, SessionDuration: time.Second, Requests: []shop.Request{at(1, 1), at(1+second, 2)}}, 0, 0},
		{"a microsecond too early", judge.Case{Active: 1, PerMinute: 9, SessionDuration: time.Second, Requests: []shop.Request{at(1, 1), at(second, 2)}}, 1, 0},
		{"a request renews", judge.Case{Active: 1, PerMinute: 9, SessionDuration: time.Second, Requests: []shop.Request{at(1, 1), at(second, 1), at(2*second-1, 2)}}, 1, 0},
		{"the window is 60 s", judge.Case{Active: 9, PerMinute: 1, SessionDuration: time.Second, Requests: []shop.Request{at(1, 1), at(1+60*second, 2)}}, 0, 0},
		{"and not a microsecond less", judge.Case{Active: 9, PerMinute: 1, SessionDuration: time.Second, Requests: []shop.Request{at(1, 1), at(60*second, 2)}}, 0, 1},
		{"also across minutes", judge.Case{Active: 9, PerMinute: 2, SessionDuration: time.Second, Requests: []shop.Request{at(58*second, 1), at(59*second, 2), at(61*second, 3), at(62*second, 4)}}, 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := test.c.Judge()
			if a, n := find(r, "active sessions").Violations, find(r, "new sessions").Violations; a != test.active || n != test.rate {
				t.Errorf("%d over the active limit, %d over the rate, want %d and %d", a, n, test.active, test.rate)
			}
		})
	}
}

func TestTableAndFigure(t *testing.T) {
	c := fair()
	c.Active = 5
	c.Outages = []judge.Outage{{From: 20 * second, Until: 21 * second}}
	r := c.Judge()
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"active sessions", "VIOLATED: active sessions", "killed at 20.000 s, ready 1.00 s later", "waited through the outage"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Every promise was kept") {
		t.Error("a violated table says that every promise was kept")
	}
	b.Reset()
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "kill -9") {
		t.Error("the figure does not mark the outage")
	}
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal("the figure is not XML: ", err)
		}
	}
	if err := (judge.Case{}).Judge().WriteSVG(io.Discard); err != nil {
		t.Error(err)
	}
}
