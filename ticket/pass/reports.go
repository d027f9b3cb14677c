package pass

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	reportEvery = 3 * time.Second // between a request and the report of it
	reportTime  = 3 * time.Second // for one batch
	maxReports  = 10_000          // visitors who wait to be reported; the oldest are dropped
)

// reports are the visitors whom the edge has let in and has not reported yet, guarded by Handler.mu.
type reports struct {
	seen    map[string]sighting // by session, as its pass names it: nobody can fill this with tickets
	order   []string            // the sessions, as they came first
	pending bool                // a report is due, or on its way
	failed  bool                // the last one has
}

// sighting is the newest request of a session.
type sighting struct {
	ticket string
	at     time.Time
}

// saw notes that a request of a session went to the origin, to be reported. Only the newest one counts.
func (h *Handler) saw(r *http.Request, sid string, now time.Time) {
	if h.Reports == nil {
		return
	}
	ticket := h.ticket(r.Header["Cookie"])
	if ticket == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reports.note(sid, sighting{ticket, now}); !h.reports.pending {
		h.reportSoon()
	}
}

// reportSoon has a report made in a while. The caller holds the lock.
func (h *Handler) reportSoon() {
	h.reports.pending = true
	if h.after == nil {
		h.after = func(d time.Duration, do func()) { time.AfterFunc(d, do) }
	}
	h.after(reportEvery, h.report)
}

// ticket returns the visitor's ticket, if there is something that may be one.
func (h *Handler) ticket(lines []string) string {
	name := h.ticketCookie()
	if h.Suffix != "" {
		name += "_" + h.Suffix
	}
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			value, ok := strings.CutPrefix(strings.Trim(pair, " \t"), name+"=")
			if ok && len(value) <= anteroom.MaxTicketBytes && strings.Trim(value, ticketLetters) == "" {
				return strings.Clone(value)
			}
		}
	}
	return ""
}

const ticketLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func (l *reports) note(sid string, one sighting) {
	if before, ok := l.seen[sid]; ok {
		if one.at.After(before.at) {
			l.seen[sid] = one
		}
		return
	}
	if len(l.order) == maxReports {
		delete(l.seen, l.order[0])
		l.order = l.order[1:]
	}
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	l.seen[sid] = one
	l.order = append(l.order, sid)
}

// report tells Anteroom of everybody who was noted. What it cannot tell it tries to tell again, until that counts no more.
func (h *Handler) report() {
	h.mu.Lock()
	l := &h.reports
	seen, order := l.seen, l.order
	l.seen, l.order = nil, nil
	h.mu.Unlock()
	var err error
	for len(order) > 0 && err == nil {
		n := min(len(order), anteroom.MaxTouches)
		if err = h.tell(order[:n], seen); err == nil {
			order = order[n:]
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, sid := range order {
		if len(l.order) < maxReports && h.now().Sub(seen[sid].at) < anteroom.MaxTouchAge {
			l.note(sid, seen[sid])
		}
	}
	if l.pending = len(l.order) > 0; l.pending {
		h.reportSoon()
	}
	switch was := l.failed; {
	case err != nil && !was:
		h.log().Warn("Anteroom takes no reports; visitors who come only with passes may have to queue again", "error", err)
	case err == nil && was:
		h.log().Info("Anteroom takes reports again")
	}
	l.failed = err != nil
}

// tell sends one batch.
func (h *Handler) tell(sids []string, seen map[string]sighting) error {
	type touch struct {
		Ticket     string `json:"ticket"`
		SecondsAgo int    `json:"seconds_ago"`
	}
	body := struct {
		Room    anteroom.RoomID `json:"room"`
		Touches []touch         `json:"touches"`
	}{Room: h.Want.Room}
	now := h.now()
	for _, sid := range sids {
		body.Touches = append(body.Touches, touch{seen[sid].ticket, max(0, int(now.Sub(seen[sid].at)/time.Second))})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, h.Reports.JoinPath("/anteroom/v1/touch").String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+h.Token)
	res, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxList)); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("touch: %s", res.Status)
	}
	return err
}

func (h *Handler) ticketCookie() string {
	if h.CookieName != "" {
		return h.CookieName
	}
	return "__cfwaitingroom"
}

func (h *Handler) log() *slog.Logger {
	if h.Log != nil {
		return h.Log
	}
	return slog.Default()
}

func (h *Handler) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}
