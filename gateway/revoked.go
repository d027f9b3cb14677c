package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/ticket/proof"
)

// revokedPath is the path of the deny list, on every host: the revoked sessions of its rooms whose passes may be valid still.
const revokedPath = wellKnown + "revoked"

const (
	// revokedEvery is how often the sites of a room are asked at most, however many edges ask here.
	revokedEvery = time.Second
	// revokedWait is how long they have to answer. Edges wait for a second.
	revokedWait = 700 * time.Millisecond
	// maxRevokedRooms bounds the work that one request makes.
	maxRevokedRooms = 20
)

// denyList is what the sites of a room said last.
type denyList struct {
	mu       sync.Mutex // held while they are asked: one request at a time does that
	asked    time.Time
	sids     []string
	complete bool
}

// revoked returns the revoked sessions of a room as its passes name them.
func (s *setup) revoked(r *room, now time.Time) (sids []string, complete bool) {
	l := r.denied
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.asked) < revokedEvery {
		return l.sids, l.complete
	}
	// Others get the answer too, so it does not depend on whether this client still waits for it.
	ctx, cancel := context.WithTimeout(context.Background(), revokedWait)
	defer cancel()
	var ids []anteroom.ID
	ids, l.complete = r.door.Revoked(ctx)
	l.sids = make([]string, len(ids))
	for i, id := range ids {
		l.sids[i] = proof.Subject(s.passes.subject, r.ID, id)
	}
	l.asked = time.Now()
	return l.sids, l.complete
}

// passingOn returns the room with passes that has an id, or those that have a route on a host.
func (s *setup) passingOn(raw string, id anteroom.RoomID) (rooms []*room) {
	host, _ := route.Host(raw)
	for _, r := range s.rooms {
		if r.passes != nil && r.ID == id || r.passes != nil && id == "" && slices.ContainsFunc(r.Routes, func(rt anteroom.Route) bool {
			own, _ := route.Host(rt.Host)
			return rt.Host == "*" || own == host
		}) {
			rooms = append(rooms, r)
		}
	}
	return rooms
}

// serveRevoked answers the reserved path of the deny list, for the room in the query or for all on the host.
func (x *exchange) serveRevoked() {
	list := struct {
		Revoked  []string `json:"revoked"`
		Complete bool     `json:"complete"`
	}{[]string{}, true}
	id := anteroom.RoomID(x.r.URL.Query().Get("room"))
	rooms := x.s.passingOn(x.r.Host, id)
	switch {
	case id != "" && len(rooms) == 0: // an edge that is told of another room must not take this for a list of nobody
		x.g.refuse(x.w, x.r, refusal{http.StatusNotFound, "There is no room with passes that has this ID", false})
		return
	case len(rooms) > maxRevokedRooms:
		x.g.refuse(x.w, x.r, refusal{http.StatusBadRequest, "Many rooms on this host have passes: name one, ?room=ID", false})
		return
	}
	for _, r := range rooms {
		sids, complete := x.s.revoked(r, x.start)
		some := sids[:min(len(sids), engine.MaxRevoked/len(rooms))]
		list.Revoked = append(list.Revoked, some...)
		list.Complete = list.Complete && complete && len(some) == len(sids)
	}
	h := x.w.Header()
	h["Content-Type"] = valueJSON
	h["Cache-Control"] = []string{"public, max-age=1"}
	x.writeJSON(list)
}
