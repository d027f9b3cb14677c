package manage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// MaxHistory is how many records of a room's history one call returns.
const MaxHistory = 1_000

// History is what the audit log has of one room.
type History struct {
	// Records, in their order. For a caller who may not read the audit log, Actor, Token, Address, Request and the
	// hashes are empty.
	Records []AuditRecord
	// Nameless says that they do not.
	Nameless bool
	// Since is where the log begins, if that is later than the requested time; otherwise zero.
	Since time.Time
	// Omitted: there were more than MaxHistory, of which the newest are here.
	Omitted bool
}

// sinceSlack is how much the wall clock may have been set back between two records.
const sinceSlack = time.Hour

// RoomHistory returns what was done to a room from one time (included) to another. A caller who may read the room may
// see what was done; seeing who did it requires the permission to read the audit log. The room may have been deleted
// since, or be defined in the configuration file.
func (m *Manager) RoomHistory(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, from, to time.Time) (h History, err error) {
	if err := by.need(Read, zone, room); err != nil {
		return h, err
	}
	h.Nameless = !by.May(Admin, "", "")
	edits := by.May(Edit, zone, room)
	first, _, last, err := m.auditRange(ctx)
	if err != nil {
		return h, err
	}
	for seq := last; seq >= first && seq > 0; seq-- {
		e, err := m.auditEntry(ctx, seq)
		if err != nil {
			return h, err
		}
		if e.At.Before(from.Add(-sinceSlack)) {
			break
		}
		if seq == first && first > 1 && e.At.After(from) {
			h.Since = e.At
		}
		if e.Room != room || e.Zone != zone || e.At.Before(from) || !e.At.Before(to) {
			continue
		}
		// Whom a webhook tells is for who may change it.
		if !edits && strings.HasPrefix(e.Operation, "webhook.") {
			continue
		}
		if len(h.Records) == MaxHistory {
			h.Omitted = true
			break
		}
		r := e.AuditRecord
		if h.Nameless {
			r.Actor, r.Token, r.Address, r.Request, r.Prev, r.Hash = "", "", "", "", "", ""
		}
		h.Records = append(h.Records, r)
	}
	slices.Reverse(h.Records)
	return h, nil
}
