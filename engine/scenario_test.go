package engine

import (
	"fmt"

	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/cockroachdb/datadriven"
)

// The scenarios in testdata are stories in these verbs; run with -rewrite to rewrite the
// answers, and read the difference as you would read code.
//
//	room [setting=value …]          a new room; the clock is at 00:00
//	set [setting=value …]           new settings while people wait
//	arrive NAME … [flags]           requests without a ticket, each a new visitor
//	visit NAME … [flags]            requests with the ticket the visitor holds
//	lost NAME …                     the same, but the answer's cookie never arrives
//	stream NAME … / close NAME …    the waiting page's stream opens / breaks
//	leave NAME …                    visitors give up their places
//	advance DURATION                time passes, in steps of 100 ms
//	admit N                         the operator gives the next N in line their turn
//	shuffle SPAN                    everybody in line gets a place by a seed
//	origin down|ok|errors=N|p95=D   what the gateway sees of the origin from now on, each second, of 100 requests
//	report NAME …                   edges tell that they have let in visitors with their tickets
//	journal stalls|works            nothing can be recorded, so nobody is admitted / until it can
//	revoke NAME                     the origin ends the session
//	revoked                         the revoked sessions whose passes may be valid, the newest first
//	replay NAME                     a request with the first ticket the visitor ever had
//	clone NAME as OTHER             OTHER gets a copy of the ticket
//	restart [forget]                the process ends and starts again from its journal
//	line / status                   who is in line, in order / the room's numbers
//	tally                           what was counted since the last time
//
// Flags: nojoin (a sub-resource), noclaim (a prefetch), unsolved (the challenge is asked and not
// solved), uninvited (the ticket was made for no invitation), lane=N (the visitor belongs to it), bind=N, hold (may be held; without it a request is answered at once).
func TestScenarios(t *testing.T) {
	reached := map[anteroom.Reason]string{}
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		w := &story{reached: reached, file: filepath.Base(path)}
		datadriven.RunTest(t, path, w.run)
	})
	for _, r := range anteroom.Reasons() {
		if reached[r] == "" {
			t.Errorf("no scenario reaches the reason %q", r)
		}
	}
}

type story struct {
	reached map[anteroom.Reason]string
	file    string

	now      anteroom.Time
	room     *Single
	settings anteroom.Settings
	opening  Opening
	record   LedgerRecord
	journal  []Event
	visitors map[string]*person
	ids      uint64
	inc      uint64
	heldBy   map[uint64]string
	late     []string
	origin   OriginFacts
}

type person struct {
	ticket, first anteroom.Ticket
}

var midnight = anteroom.TimeOf(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))

func (w *story) newID() anteroom.ID {
	w.ids++
	var id anteroom.ID
	x := w.ids * 0x9e3779b97f4a7c15
	for i := range 8 {
		id[i], id[8+i] = byte(x>>(8*i)), byte(w.ids>>(8*i))
	}
	return id
}

func (w *story) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	flags := map[string]string{}
	var names []string
	for _, a := range d.CmdArgs {
		switch {
		case len(a.Vals) > 0:
			flags[a.Key] = a.Vals[0]
		case a.Key == "nojoin" || a.Key == "noclaim" || a.Key == "hold" || a.Key == "forget" || a.Key == "quiet" || a.Key == "unsolved" || a.Key == "uninvited":
			flags[a.Key] = ""
		default:
			names = append(names, expand(a.Key)...)
		}
	}
	switch d.Cmd {
	case "room":
		w.now, w.visitors, w.journal, w.ids, w.inc = midnight, map[string]*person{}, nil, 0, 1
		w.opening, w.origin = Opening{}, OriginFacts{}
		w.record, w.heldBy = LedgerRecord{}, map[uint64]string{}
		w.settings = anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 100, SessionDuration: 5 * time.Minute, FirstSession: 24 * time.Hour}
		w.apply(t, flags)
		w.start(nil, 0)
		if n, err := strconv.Atoi(flags["max_line"]); err == nil {
			w.room.site.maxHere = n
		}
		if n, err := strconv.Atoi(flags["max_used"]); err == nil {
			w.room.site.maxUsed = n
		}
		out.WriteString("ok\n")
	case "set":
		w.apply(t, flags)
		w.room.Expect(w.opening)
		w.room.Configure(w.now, w.settings)
		w.store()
		w.collect()
		out.WriteString("ok\n")
	case "arrive", "visit", "lost", "stream", "leave":
		for _, name := range names {
			w.visit(t, &out, d.Cmd, name, flags)
		}
	case "close":
		for _, name := range names {
			w.room.CloseStream(w.now, w.visitors[name].ticket.ID)
		}
		w.collect()
		out.WriteString("ok\n")
	case "advance":
		dur, err := time.ParseDuration(names[0])
		if err != nil {
			t.Fatal(err)
		}
		for end := w.now.Add(dur); w.now < end; {
			w.now = min(end, w.now.Add(100*time.Millisecond))
			w.room.Origin(w.now, w.origin)
			w.room.Tick(w.now)
			w.store()
			w.collect()
		}
		out.WriteString("at " + clock(w.now) + "\n")
	case "admit":
		n, _ := strconv.Atoi(names[0])
		fmt.Fprintf(&out, "%d turns given\n", w.room.AdmitNow(w.now, n))
		w.store()
		w.collect()
	case "shuffle":
		span, _ := time.ParseDuration(names[0])
		sh := w.room.Shuffle(w.now, anteroom.ID{1}, []byte("secret"), span)
		fmt.Fprintf(&out, "%d tickets\n", len(sh.IDs))
		w.collect()
	case "journal":
		w.room.Hold(w.now, names[0] == "stalls")
		w.store()
		w.collect()
		out.WriteString("ok\n")
	case "origin":
		w.origin = OriginFacts{Known: true, Requests: 100, Down: len(names) > 0 && names[0] == "down"}
		if n, err := strconv.Atoi(flags["errors"]); err == nil {
			w.origin.Failed = uint32(n)
		}
		w.origin.P95, _ = time.ParseDuration(flags["p95"])
		w.room.Origin(w.now, w.origin)
		w.collect()
		out.WriteString("ok\n")
	case "report":
		for _, name := range names {
			d, held := w.room.Visit(w.now, anteroom.Visit{Ticket: w.visitors[name].ticket, NoClaim: true, NoJoin: true, NoHold: true})
			fmt.Fprintf(&out, "%s %v\n", name, map[bool]string{true: "taken", false: "no session"}[held == 0 && d.Verdict == anteroom.Admit])
		}
		w.collect()
	case "revoke":
		for _, name := range names {
			fmt.Fprintf(&out, "%s %v\n", name, map[bool]string{true: "ended", false: "no session"}[w.room.Revoke(w.now, w.visitors[name].ticket.ID)])
		}
		w.collect()
	case "revoked":
		w.room.Tick(w.now)
		w.collect()
		ids, _ := w.room.Revoked()
		fmt.Fprintf(&out, "%d", len(ids))
		for _, id := range ids {
			fmt.Fprintf(&out, " %s", w.nameOf(id))
		}
		out.WriteString("\n")
	case "replay":
		for _, name := range names {
			p := w.visitors[name]
			w.visitors[name+"'"] = &person{ticket: p.first, first: p.first}
			w.visit(t, &out, "visit", name+"'", flags)
		}
	case "clone":
		p := *w.visitors[names[0]]
		w.visitors[names[2]] = &p
		out.WriteString("ok\n")
	case "restart":
		events := w.journal
		if _, ok := flags["forget"]; ok {
			events = nil
			w.inc++
		}
		w.start(events, 0)
		out.WriteString("ok\n")
	case "line":
		w.room.Tick(w.now)
		w.collect()
		for i, id := range w.room.coordinator.Line() {
			fmt.Fprintf(&out, "%d %s\n", i+1, w.nameOf(id))
		}
	case "status":
		w.room.Tick(w.now)
		w.collect()
		s := w.room.Status(w.now)
		fmt.Fprintf(&out, "%s: %d active, %d in the last minute, %d waiting, %d away, %d offered", s.Mode, s.ActiveUsers, s.AdmittedLastMin, s.Waiting, s.Dormant, s.Offered)
		if s.PaceReason != anteroom.PaceLimits {
			fmt.Fprintf(&out, ", at most %d a minute: %s", s.Pace, s.PaceReason)
		}
		out.WriteString("\n")
		for _, l := range s.Lanes {
			fmt.Fprintf(&out, "lane %d %q: %d waiting, %d active", l.Priority, l.Name, l.Waiting, l.ActiveUsers)
			if l.WaitKnown {
				fmt.Fprintf(&out, ", about %v", l.WaitOfNewcomer.Round(time.Second))
			}
			out.WriteString("\n")
		}
	case "tally":
		w.room.Tick(w.now)
		w.collect()
		c := w.room.TakeTally()
		fmt.Fprintf(&out, "%d new, %d joined, %d abandoned, %d no-shows, %d overtakes, %d revoked\n", c.NewUsers, c.Joined, c.Abandoned, c.NoShows, c.Overtakes, c.Revoked)
		for _, span := range []struct {
			name string
			all  []time.Duration
		}{{"waited", c.Waited}, {"stayed", c.Stayed}, {"late", c.Late}, {"early", c.Early}} {
			if len(span.all) > 0 {
				fmt.Fprintf(&out, "%s %v\n", span.name, span.all)
			}
		}
	default:
		t.Fatalf("%s: no such verb: %s", d.Pos, d.Cmd)
	}
	if w.room != nil && !w.room.site.Sound() {
		t.Errorf("%s: the balance was overdrawn", d.Pos)
	}
	for _, l := range w.late {
		out.WriteString(l + "\n")
	}
	w.late = nil
	if out.Len() == 0 {
		return "nobody\n"
	}
	return out.String()
}

func (w *story) start(events []Event, shift time.Duration) {
	w.room = NewSingle(w.now, SiteKey{Name: "here", Incarnation: w.inc}, w.settings, w.record, []byte("seed"), events, shift, 0)
	w.room.KeepTally()
	w.store()
	w.collect()
}

func (w *story) store() {
	for {
		rec, ok := w.room.Needs()
		if !ok {
			return
		}
		w.record = rec
		w.room.Stored(w.now, rec)
	}
}

// collect gathers late answers, calls and records.
func (w *story) collect() {
	w.journal = append(w.journal, w.room.TakeEvents()...)
	for _, a := range w.room.TakeAnswers(w.now) {
		name := w.heldBy[a.Token]
		delete(w.heldBy, a.Token)
		w.late = append(w.late, "  then "+w.say(name, a.Decision))
		w.keep(name, a.Decision)
	}
	for _, id := range w.room.TakePushes() {
		w.late = append(w.late, "  then "+w.nameOf(id)+" is called")
	}
}

func (w *story) visit(t *testing.T, out *strings.Builder, verb, name string, flags map[string]string) {
	p := w.visitors[name]
	if p == nil || verb == "arrive" {
		p = &person{}
		w.visitors[name] = p
	}
	v := anteroom.Visit{Ticket: p.ticket, NewID: w.newID(), NoHold: true, Stream: verb == "stream"}
	if verb == "leave" { // the page with the button and its stream goes
		v.Leave, v.NoJoin, v.NoClaim = true, true, true
		w.room.CloseStream(w.now, p.ticket.ID)
	}
	if p.ticket.ID.IsZero() {
		v.Fresh, v.Ticket = true, anteroom.Ticket{ID: w.newID()}
	}
	for k, val := range flags {
		switch k {
		case "nojoin":
			v.NoJoin = true
		case "noclaim":
			v.NoClaim = true
		case "hold":
			v.NoHold = false
		case "unsolved":
			v.Unsolved = true
		case "uninvited":
			v.Uninvited = true
		case "lane":
			n, _ := strconv.Atoi(val)
			v.Lane = uint8(n)
		case "net": // an address of a /24 of 16
			n, _ := strconv.Atoi(val)
			v.Networks = anteroom.Networks{1 + uint32(n), 1000 + uint32(n/16)}
		case "bind":
			n, _ := strconv.Atoi(val)
			v.Bind = uint16(n)
		}
	}
	d, held := w.room.Visit(w.now, v)
	w.store()
	if held != 0 {
		w.heldBy[held] = name
		n := len(w.late)
		w.collect()
		if len(w.late) > n { // answered within the same instant
			for _, l := range w.late[n:] {
				out.WriteString(strings.TrimPrefix(l, "  then ") + "\n")
			}
			w.late = w.late[:n]
			return
		}
		out.WriteString(name + " held\n")
		return
	}
	if verb != "lost" {
		w.keep(name, d)
	}
	if _, quiet := flags["quiet"]; !quiet {
		out.WriteString(w.say(name, d) + "\n")
	}
	w.collect()
}

func (w *story) keep(name string, d anteroom.Decision) {
	p := w.visitors[name]
	if p != nil && d.SetCookie {
		p.ticket = d.Ticket
		if p.first.ID.IsZero() {
			p.first = d.Ticket
		}
	}
}

func (w *story) say(name string, d anteroom.Decision) string {
	w.reached[d.Reason] = w.file
	if d.Verdict != d.Reason.Verdict() {
		panic(fmt.Sprintf("%s: %v with the verdict %v", w.file, d.Reason, d.Verdict))
	}
	s := fmt.Sprintf("%s %s: %s", name, d.Verdict, d.Reason)
	if d.Verdict == anteroom.Wait {
		if d.AheadKnown {
			s += fmt.Sprintf(", %d ahead", d.Ahead)
		}
		if d.WaitKnown {
			s += ", about " + d.WaitTime.Round(time.Second).String()
		}
		if d.QueueIsFull {
			s += ", line full"
		}
	}
	if d.Verdict != anteroom.Admit && d.Refresh > 0 {
		s += ", back in " + d.Refresh.String()
	}
	return s
}

func (w *story) nameOf(id anteroom.ID) string {
	var names []string
	for n, p := range w.visitors {
		if p.ticket.ID == id {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	if len(names) == 0 {
		return "?"
	}
	return names[0]
}

func (w *story) apply(t *testing.T, flags map[string]string) {
	for k, v := range flags {
		n, _ := strconv.Atoi(v)
		d, _ := time.ParseDuration(v)
		switch k {
		case "total_active_users":
			w.settings.TotalActiveUsers = n
		case "new_users_per_minute":
			w.settings.NewUsersPerMinute = n
		case "session_duration":
			w.settings.SessionDuration = d
		case "pass":
			w.settings.Pass = d
		case "pass_reported":
			w.settings.PassReported = v == "true"
		case "redeem":
			w.settings.Redeem = d
		case "first_session":
			w.settings.FirstSession = d
		case "disable_session_renewal":
			w.settings.DisableSessionRenewal = v == "true"
		case "queueing_method":
			w.settings.QueueingMethod = anteroom.QueueingMethod(v)
		case "queue_all":
			w.settings.QueueAll = v == "true"
		case "prequeueing":
			w.settings.Prequeueing = v == "true"
		case "opening", "shuffled_opening": // after so long
			w.opening = Opening{At: w.now.Add(d), Shuffled: k != "opening"}
		case "invite_only":
			w.settings.InviteOnly = v == "true"
		case "infinite_queue":
			w.settings.InfiniteQueue = v == "true"
		case "draining":
			w.settings.Draining = v == "true"
		case "reset":
			w.settings.ResetAt = w.now
		case "suspended":
			w.settings.Suspended = v == "true"
		case "refresh":
			w.settings.Refresh = d
		case "protect":
			w.settings.Protect = v == "true"
		case "protect_errors":
			w.settings.ProtectErrors = n
		case "protect_latency":
			w.settings.ProtectLatency = d
		case "protect_return":
			w.settings.ProtectReturn = d
		case "unpaced":
			w.settings.Unpaced = v == "true"
		case "max_line", "max_used": // a bound so low that a story can meet it
		case "place_hold":
			w.settings.PlaceHold = d
		case "lanes": // priority/share/reserved,…
			w.settings.Lanes = nil
			for text := range strings.SplitSeq(v, ",") {
				var l anteroom.Lane
				if n, _ := fmt.Sscanf(text, "%d/%d/%d", &l.Priority, &l.Share, &l.Reserved); n > 0 {
					l.Name = fmt.Sprintf("lane%d", l.Priority)
					if w.settings.Lanes == nil {
						w.settings.Lanes = new(anteroom.Lanes)
					}
					w.settings.Lanes.List = append(w.settings.Lanes.List, l)
				}
			}
		default:
			t.Fatalf("no such setting: %s", k)
		}
	}
}

// expand turns v1..9 into v1 v2 … v9.
func expand(s string) []string {
	head, to, ok := strings.Cut(s, "..")
	if !ok {
		return []string{s}
	}
	prefix := strings.TrimRight(head, "0123456789")
	a, _ := strconv.Atoi(head[len(prefix):])
	b, _ := strconv.Atoi(to)
	var out []string
	for ; a <= b; a++ {
		out = append(out, prefix+strconv.Itoa(a))
	}
	return out
}

func clock(t anteroom.Time) string { return t.Std().Format("15:04:05.0") }
