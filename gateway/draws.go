package gateway

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/page"
)

// wellKnown begins every path of ours that stands on every host, whatever room covers it.
const wellKnown = "/.well-known/anteroom/"

// drawPath is the root of the public records of shuffles, on every host: <room>/<event>/<number> below it is the record
// of an occurrence's shuffle, and <number>/ids are the sorted ids of all participants, 16 bytes each.
const drawPath = wellKnown + "draw/"

const (
	// maxDrawDownloads bounds how many lists of ids are sent at the same time.
	maxDrawDownloads = 16
	// A list of ids is large for the request that asks for it: one address gets a few, and no
	// more of them than it could check.
	drawsPerSecond, drawsBurst = .1, 6
	// Receipts of one address: a page asks for one when somebody looks at it.
	receiptsPerSecond, receiptsBurst = 10, 50
	// drawPlaces is the number of shuffles whose places are kept in memory.
	drawPlaces = 8
	// receiptEvents is the number of events that a receipt is looked for in, newest first.
	receiptEvents = 4
)

// draw is a shuffle with the words of its event, as everybody gets it.
type draw struct {
	Room       anteroom.RoomID  `json:"room"`
	Event      anteroom.EventID `json:"event"`
	Name       string           `json:"name,omitempty"`
	Number     int              `json:"number"`
	Start      string           `json:"start,omitempty"`
	Commitment string           `json:"commitment"`
	Done       bool             `json:"done"`
	At         string           `json:"at,omitempty"`
	Seed       string           `json:"seed,omitempty"`
	Entries    string           `json:"entries,omitempty"`
	Count      int              `json:"count,omitempty"`
	IDs        string           `json:"ids,omitempty"` // path of the list

	shuffle *anteroom.Shuffle
}

// receipt is a draw with one visitor's part in it.
type receipt struct {
	draw
	ID       string `json:"id"`
	TookPart *bool  `json:"took_part,omitempty"` // nil before the draw
	Place    int    `json:"place,omitempty"`     // from 1
}

// drawOf returns the public record of an occurrence's shuffle. That of an event which has been
// deleted since has no name.
func (rm *room) drawOf(event anteroom.EventID, number int) (d draw, ok bool) {
	sh, ok := rm.door.Shuffle(event, number)
	if !ok {
		return d, false
	}
	d = draw{Room: rm.ID, Event: event, Number: number, Commitment: hex.EncodeToString(sh.Commitment[:]), Done: sh.Done, shuffle: sh}
	if i := slices.IndexFunc(rm.Events, func(e anteroom.Event) bool { return e.ID == event }); i >= 0 {
		d.Name = rm.Events[i].Name
		if o, ok := rm.Events[i].Occurrence(number); ok {
			d.Start = o.Start.UTC().Format(time.RFC3339Nano)
		}
	}
	if sh.Done {
		d.At = sh.At.Std().Format(time.RFC3339Nano)
		d.Seed, d.Entries, d.Count = hex.EncodeToString(sh.Seed[:]), hex.EncodeToString(sh.Entries[:]), len(sh.IDs)
		d.IDs = drawPath + string(rm.ID) + "/" + string(event) + "/" + strconv.Itoa(number) + "/ids"
	}
	return d, true
}

// serveWellKnown answers the paths of ours that have nothing to do with a room's coverage. It
// reports false when the path is none of them.
func (x *exchange) serveWellKnown() bool {
	var answer func()
	path := x.r.URL.Path
	switch {
	case path == jwksPath && (x.s.Proof != nil || x.s.issuesPasses()):
		answer = x.serveKeys
	case path == passPEMPath && x.s.issuesPasses():
		answer = x.servePassKeys
	case path == revokedPath && x.s.issuesPasses():
		answer = x.serveRevoked
	case path == passPath && x.room != nil && x.room.passes != nil:
		answer = x.serveRenewal
	case path == page.VerifyPath:
		answer = x.serveVerify
	case strings.HasPrefix(path, page.LogoPath):
		answer = x.serveLogo
	case strings.HasPrefix(path, page.LivePath):
		answer = x.serveLive
	case strings.HasPrefix(path, page.MorePath):
		answer = x.serveMore
	case strings.HasPrefix(path, drawPath):
		answer = func() { x.serveDraw(path[len(drawPath):]) }
	default:
		return false
	}
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header()["Allow"] = valueAllowRead
		x.g.refuse(x.w, x.r, refusal{http.StatusMethodNotAllowed, "Use GET to read this", true})
		return true
	}
	x.w.Header()["X-Content-Type-Options"] = valueNosniff
	answer()
	return true
}

// serveLogo answers with the logo of a room's page. Its address changes with it, so that it may be kept.
func (x *exchange) serveLogo() {
	id, _, _ := strings.Cut(x.r.URL.Path[len(page.LogoPath):], "/")
	i, ok := x.s.byID[anteroom.RoomID(id)]
	if !ok || x.s.rooms[i].brand == nil || x.s.rooms[i].brand.LogoURL != x.r.URL.Path {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "There is no such logo", false})
		return
	}
	brand, h := x.s.rooms[i].brand, x.w.Header()
	h["Content-Type"] = []string{brand.LogoType}
	h["Content-Security-Policy"] = []string{"default-src 'none'"}
	h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	x.write(http.StatusOK, brand.Logo)
}

// serveLive answers with the script that keeps an operator's page up to date. An upgrade may change what it does.
func (x *exchange) serveLive() {
	zip := acceptsGzip(x.r)
	script, ok := page.AppendLive(x.buf[:0], x.r.URL.Path[len(page.LivePath):], zip)
	if !ok {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "There is no script with this name; they are named like en-US.js", false})
		return
	}
	h := x.w.Header()
	h["Content-Type"] = valueScript
	h["Cache-Control"] = []string{"public, max-age=300"}
	h["Vary"] = []string{"Accept-Encoding"}
	if zip {
		h["Content-Encoding"] = valueGzip
	}
	x.write(http.StatusOK, script)
}

// serveMore answers with what the built-in page loads when a visitor needs it.
func (x *exchange) serveMore() {
	zip, name := acceptsGzip(x.r), x.r.URL.Path[len(page.MorePath):]
	content, lasting, ok := page.AppendMore(x.buf[:0], name, zip)
	if !ok {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "There is no such file in this release", false})
		return
	}
	h := x.w.Header()
	h["Content-Type"] = valueScript
	if strings.HasSuffix(name, ".json") {
		h["Content-Type"] = valueJSON
	}
	h["Cache-Control"] = []string{"public, max-age=300"}
	if lasting {
		h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	}
	h["Content-Security-Policy"] = []string{"default-src 'none'"} // the worker needs nothing either
	h["Vary"] = []string{"Accept-Encoding"}
	if zip {
		h["Content-Encoding"] = valueGzip
	}
	x.write(http.StatusOK, content)
}

func (x *exchange) serveVerify() {
	h := x.w.Header()
	h["Content-Type"] = valueTextHTML
	h["Content-Security-Policy"] = []string{page.VerifyPolicy()}
	h["Cache-Control"] = []string{"public, max-age=300"}
	h["Referrer-Policy"] = []string{"no-referrer"}
	h["X-Robots-Tag"] = valueNoindex
	x.write(http.StatusOK, page.AppendVerify(x.buf[:0]))
}

// serveDraw answers <room>/<event>/<number> and <room>/<event>/<number>/ids.
func (x *exchange) serveDraw(path string) {
	missing := refusal{http.StatusNotFound, "There is no shuffle with this name; it exists from the start of the event's prequeue", false}
	parts := strings.Split(path, "/")
	if len(parts) < 3 || len(parts) > 4 || len(parts) == 4 && parts[3] != "ids" {
		x.g.refuse(x.w, x.r, missing)
		return
	}
	var rm *room
	if i, served := x.s.byID[anteroom.RoomID(parts[0])]; served {
		rm = x.s.rooms[i]
	}
	number, err := strconv.ParseUint(parts[2], 10, 20)
	if rm == nil || err != nil || parts[2] != strconv.FormatUint(number, 10) {
		x.g.refuse(x.w, x.r, missing)
		return
	}
	x.w.Header()["Access-Control-Allow-Origin"] = []string{"*"} // it is for everybody to check
	d, ok := rm.drawOf(anteroom.EventID(parts[1]), int(number))
	switch {
	case !ok:
		x.g.refuse(x.w, x.r, missing)
	case len(parts) == 4:
		x.serveIDs(d)
	default:
		h := x.w.Header()
		h["Content-Type"] = valueJSON
		h["Cache-Control"] = []string{"public, max-age=1"}
		if d.Done {
			h["Cache-Control"] = []string{"public, max-age=3600"}
		}
		x.writeJSON(d)
	}
}

func (x *exchange) writeJSON(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	x.write(http.StatusOK, append(body, '\n'))
}

// serveIDs sends everybody who took part. Nothing changes any more, so that caches may keep
// it and a download can be resumed.
func (x *exchange) serveIDs(d draw) {
	if !d.Done {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "The shuffle has not happened yet; the ids are available after it", false})
		return
	}
	if !x.s.drawings.spend(x.client, x.s.now()) {
		x.w.Header()["Retry-After"] = []string{"60"}
		x.g.refuse(x.w, x.r, refusal{http.StatusTooManyRequests, "Too many downloads of a shuffle: keep the one that you have", false})
		return
	}
	select {
	case x.g.draws.downloads <- struct{}{}:
		defer func() { <-x.g.draws.downloads }()
	default:
		x.g.refuse(x.w, x.r, refusal{http.StatusServiceUnavailable, "Too many downloads of shuffles right now; please try again", false})
		return
	}
	h := x.w.Header()
	h["Content-Type"] = []string{"application/octet-stream"}
	h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	h["Etag"] = []string{`"` + d.Entries + `"`}
	body := idReader(d.shuffle.IDs)
	// 64 KiB a second is what a slow line brings.
	http.NewResponseController(x.w).SetWriteDeadline(x.start.Add(x.s.Timeouts.Page + time.Duration(body.size())*time.Second/(64<<10)))
	http.ServeContent(x.w, x.r, "", time.Time{}, io.NewSectionReader(body, 0, body.size()))
}

// idReader reads ids one behind the other.
type idReader []anteroom.ID

func (r idReader) size() int64 { return int64(len(r)) * int64(len(anteroom.ID{})) }

// ReadAt implements io.ReaderAt.
func (r idReader) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at >= r.size() {
			return n, io.EOF
		}
		c := copy(p[n:], r[at/16][at%16:])
		n, at = n+c, at+int64(c)
	}
	return n, nil
}

// receipt answers a visitor's question for the shuffle that the own ticket takes or took
// part in. The question is no visit: nothing is decided and no place is renewed.
func (x *exchange) receipt() {
	h := x.neverStored()
	if !x.s.receipts.spend(x.client, x.s.now()) {
		h["Retry-After"] = valueRetrySoon
		x.g.refuse(x.w, x.r, refusal{http.StatusTooManyRequests, "Too many receipts right now; please try again", false})
		return
	}
	id := x.presented.ID
	if id.IsZero() {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "This request has no ticket, so there is no receipt for it", false})
		return
	}
	var found *receipt
	for _, o := range x.room.opened(x.start) {
		d, ok := x.room.drawOf(o.event, o.Number)
		if !ok {
			continue
		}
		one := &receipt{draw: d, ID: hex.EncodeToString(id[:])}
		if d.Done {
			i, in := slices.BinarySearchFunc(d.shuffle.IDs, id, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
			one.TookPart = &in
			if in {
				one.Place = x.g.draws.places(d.shuffle)[i]
			}
		}
		if found == nil {
			found = one
		}
		if one.Place > 0 {
			found = one
			break
		}
	}
	if found == nil {
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "There is no shuffle here", false})
		return
	}
	h["Content-Type"] = valueJSON
	x.writeJSON(found)
}

// opening is an occurrence of an event of a room.
type opening struct {
	event anteroom.EventID
	anteroom.Occurrence
}

// opened returns the newest occurrence of each event with a shuffle that has opened by a
// moment, the newest first.
func (rm *room) opened(now time.Time) []opening {
	var all []opening
	for i := range rm.Events {
		e := &rm.Events[i]
		if !e.ShuffleAtStart || e.Suspended {
			continue
		}
		if o, ok := e.Latest(now); ok {
			all = append(all, opening{e.ID, o})
		}
	}
	slices.SortFunc(all, func(a, b opening) int { return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.event, b.event)) })
	return all[:min(len(all), receiptEvents)]
}

// draws is what a gateway keeps of shuffles.
type draws struct {
	downloads chan struct{}

	mu     sync.Mutex
	known  map[[32]byte]func() []int // by the commitment
	oldest [][32]byte
}

func newDraws() draws {
	return draws{downloads: make(chan struct{}, maxDrawDownloads), known: map[[32]byte]func() []int{}}
}

// places returns the place of each of a shuffle's ids, from 1. They are computed when they
// are asked for first, which takes some seconds for a million.
func (d *draws) places(sh *anteroom.Shuffle) []int {
	d.mu.Lock()
	places := d.known[sh.Commitment]
	if places == nil {
		places = sync.OnceValue(func() []int {
			out := make([]int, len(sh.IDs))
			for place, i := range engine.Order(engine.ShuffleKey(sh.Seed[:], sh.Entries), sh.IDs) {
				out[i] = place + 1
			}
			return out
		})
		d.known[sh.Commitment] = places
		if d.oldest = append(d.oldest, sh.Commitment); len(d.oldest) > drawPlaces {
			delete(d.known, d.oldest[0])
			d.oldest = d.oldest[1:]
		}
	}
	d.mu.Unlock()
	return places()
}
