package manage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/invite"
)

// Bounds of invite codes.
const (
	maxInviteCodes    = 10_000 // of a batch
	maxInviteUses     = 10_000 // of a code
	maxInviteBatches  = 100    // of all rooms together
	maxInviteLife     = 366 * 24 * time.Hour
	defaultInviteLife = 30 * 24 * time.Hour
	// inviteMemory is how long an expired batch is listed.
	inviteMemory = 30 * 24 * time.Hour
)

const hashSize = len(invite.Hash{})

// InviteSpec is a batch of invite codes to be made.
type InviteSpec struct {
	Name      string           `json:"name"`
	Event     anteroom.EventID `json:"event,omitempty"` // codes work only while it is active; empty: at any time
	Count     int              `json:"count"`
	Lane      string           `json:"lane,omitempty"` // of the room, by name, which the codes are for; empty: none
	Uses      int              `json:"uses"`           // how many visitors each code admits to the queue
	ExpiresOn time.Time        `json:"expires_on"`
}

// Invites is a batch of invite codes, without the codes.
type Invites struct {
	ID   string          `json:"id"`
	Room anteroom.RoomID `json:"room"`
	InviteSpec
	CreatedOn time.Time `json:"created_on"`
	CreatedBy string    `json:"created_by"`
}

// storedInvites is a batch as it is stored. Of the codes there are only hashes, sorted, one after the other.
type storedInvites struct {
	Made    uint64  `json:"made"`
	Invites Invites `json:"invites"`
	Hashes  []byte  `json:"hashes"`
}

type invitesDocument struct {
	header
	storedInvites
}

func (b *storedInvites) birth() (made uint64, id string) { return b.Made, b.Invites.ID }

// has reports whether a code is one of the batch.
func (b *storedInvites) has(h invite.Hash) bool {
	n := len(b.Hashes) / hashSize
	i := sort.Search(n, func(i int) bool { return bytes.Compare(b.Hashes[i*hashSize:(i+1)*hashSize], h[:]) >= 0 })
	return i < n && bytes.Equal(b.Hashes[i*hashSize:(i+1)*hashSize], h[:])
}

// spentPrefixes begins the keys of all codes that were used, spentPrefix those of a batch. They end with the batch, by themselves.
const spentPrefixes = "invites."

func spentPrefix(batch string) string { return spentPrefixes + batch + "." }

// hasKey is has for the last part of a key.
func (b *storedInvites) hasKey(code string) bool {
	raw, err := hex.DecodeString(code)
	return err == nil && len(raw) == hashSize && b.has(invite.Hash(raw)) && hex.EncodeToString(raw) == code
}

// readInvites reads a document.
func readInvites(key string, data []byte) (*storedInvites, error) {
	var d invitesDocument
	if err := decode(key, data, &d); err != nil {
		return nil, err
	}
	if b := &d.storedInvites; invitesPrefix+b.Invites.ID != key || b.check() != nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: it is not this batch of invite codes; %s", key, wayBack)
	}
	return &d.storedInvites, nil
}

// check finds what no operation would have made.
func (b *storedInvites) check() error {
	i := &b.Invites
	if !isID(i.ID) || i.Count < 1 || i.Count > maxInviteCodes || i.Uses < 1 || i.Uses > maxInviteUses || i.ExpiresOn.IsZero() || len(b.Hashes) != i.Count*hashSize {
		return fmt.Errorf("the batch of invite codes %.64q is not one that was made here", i.ID)
	}
	return nil
}

// Invites returns the batches of a room in the order of their creation.
func (m *Manager) Invites(by Caller, zone anteroom.ZoneID, room anteroom.RoomID) (out []Invites, err error) {
	s := m.State()
	if _, err := s.room(by, Read, zone, room); err != nil {
		return nil, err
	}
	for _, b := range s.invites {
		if b.Invites.Room == room {
			out = append(out, b.Invites)
		}
	}
	return out, nil
}

// InviteUses returns how many uses of a batch's codes were taken.
func (m *Manager) InviteUses(ctx context.Context, i Invites) (used int, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	keys, err := m.cfg.Link.Keys(ctx, spentPrefix(i.ID))
	if err != nil {
		return 0, unavailable(err)
	}
	if i.Uses == 1 {
		return len(keys), nil
	}
	for _, key := range keys {
		n, err := invite.Used(ctx, m.cfg.Link, key)
		if err != nil {
			return 0, unavailable(err)
		}
		used += n
	}
	return used, nil
}

// inviteLeft reports whether a batch has uses left. It counts them only if no code is untouched.
func (m *Manager) inviteLeft(ctx context.Context, i Invites) (bool, error) {
	short, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	keys, err := m.cfg.Link.Keys(short, spentPrefix(i.ID))
	if err != nil {
		return false, unavailable(err)
	}
	if len(keys) < i.Count || i.Uses == 1 {
		return len(keys) < i.Count, nil
	}
	used, err := m.InviteUses(ctx, i)
	return used < i.Count*i.Uses, err
}

// CreateInvites makes a batch of invite codes for a room, and returns the codes this once. A zero time is defaultInviteLife from now, or the end
// of the codes' event if that is later; zero uses are one.
func (m *Manager) CreateInvites(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, spec InviteSpec) (made Invites, codes []string, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		r, err := t.old.room(t.by, Edit, zone, room)
		if err != nil {
			return err
		}
		spec := spec
		spec.Uses = cmp.Or(spec.Uses, 1)
		if spec.ExpiresOn.IsZero() {
			spec.ExpiresOn = t.now.Add(defaultInviteLife)
			if o, ok := spec.occurrence(r, t.now); ok && o.End.After(spec.ExpiresOn) {
				spec.ExpiresOn = slices.MinFunc([]time.Time{o.End, t.now.Add(maxInviteLife)}, time.Time.Compare)
			}
		}
		spec.ExpiresOn = spec.ExpiresOn.UTC()
		if err := spec.check(r, t.now).Err(); err != nil {
			return err
		}
		for _, b := range t.old.invites {
			if t.old.byID[b.Invites.Room] == nil || t.now.Sub(b.Invites.ExpiresOn) > inviteMemory {
				t.dropInvites(b)
			}
		}
		if len(t.next.invites) >= maxInviteBatches {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d batches of invite codes, the maximum: delete unused ones", len(t.next.invites))
		}
		one := &storedInvites{Made: t.seq(), Invites: Invites{ID: newID(), Room: room, InviteSpec: spec, CreatedOn: t.now, CreatedBy: t.by.Name}}
		if codes, one.Hashes, err = newCodes(spec.Count); err != nil {
			return err
		}
		t.next.invites = append(slices.Clone(t.next.invites), one)
		made = one.Invites
		t.entry.Zone, t.entry.Room = zone, room
		t.note("invites.create", made.ID, made.Name, nil, made)
		return t.put(invitesPrefix+made.ID, invitesDocument{t.header(), *one})
	})
	return made, codes, err
}

func newCodes(n int) (codes []string, hashes []byte, err error) {
	all := make([]invite.Hash, n)
	codes = make([]string, n)
	for i := range all {
		codes[i] = invite.NewCode()
		var ok bool
		if all[i], ok = invite.Read(codes[i]); !ok {
			return nil, nil, errors.New("a new invite code is not valid")
		}
	}
	slices.SortFunc(all, func(a, b invite.Hash) int { return bytes.Compare(a[:], b[:]) })
	for _, h := range all {
		hashes = append(hashes, h[:]...)
	}
	return codes, hashes, nil
}

// occurrence is the next one of the event that the codes are for.
func (spec InviteSpec) occurrence(r *Served, now time.Time) (anteroom.Occurrence, bool) {
	i := slices.IndexFunc(r.Events, func(e anteroom.Event) bool { return e.ID == spec.Event })
	if spec.Event == "" || i < 0 {
		return anteroom.Occurrence{}, false
	}
	return r.Events[i].Next(now)
}

func (spec InviteSpec) check(r *Served, now time.Time) (f anteroom.Faults) {
	add := func(path, problem, fix string) {
		f = append(f, anteroom.Fault{Path: path, Problem: problem, Fix: fix})
	}
	if n := len(spec.Name); n > 64 || strings.ContainsFunc(spec.Name, unicode.IsControl) {
		add("name", "is too long or has control characters", "at most 64 bytes of text")
	}
	if spec.Count < 1 || spec.Count > maxInviteCodes {
		add("count", fmt.Sprintf("is %d", spec.Count), fmt.Sprintf("1 to %d; make several batches for more", maxInviteCodes))
	}
	if spec.Uses < 1 || spec.Uses > maxInviteUses {
		add("uses", fmt.Sprintf("is %d", spec.Uses), fmt.Sprintf("1 to %d", maxInviteUses))
	}
	if left := spec.ExpiresOn.Sub(now); left <= 0 || left > maxInviteLife {
		add("expires_on", "is not within the next 366 days", "RFC 3339, like 2026-11-27T09:00:00Z")
	}
	if spec.Event != "" && !slices.ContainsFunc(r.Events, func(e anteroom.Event) bool { return e.ID == spec.Event }) {
		add("event", fmt.Sprintf("there is no event %.64q in that room", spec.Event), "the id of one of the room's events")
	}
	if o, ok := spec.occurrence(r, now); ok && len(f) == 0 && !spec.ExpiresOn.After(o.From) {
		add("expires_on", "is before the event begins: nobody could use the codes", "a moment after "+o.From.UTC().Format(time.RFC3339))
	}
	if spec.Lane != "" && !slices.ContainsFunc(r.Lanes, func(l anteroom.Lane) bool { return l.Name == spec.Lane && l.Priority > 0 }) {
		add("lane", fmt.Sprintf("the room has no lane %.64q with a priority", spec.Lane), "the name of one of the room's lanes whose priority is 1 or more")
	}
	return f
}

// DeleteInvites revokes the codes of a batch that were not used. Visitors who have used theirs keep their place.
func (m *Manager) DeleteInvites(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, id string) error {
	return m.change(ctx, by, func(t *tx) error {
		if _, err := t.old.room(t.by, Edit, zone, room); err != nil {
			return err
		}
		i := slices.IndexFunc(t.old.invites, func(b *storedInvites) bool { return b.Invites.ID == id && b.Invites.Room == room })
		if i < 0 {
			return notFound("batch of invite codes", id)
		}
		old := t.old.invites[i]
		t.dropInvites(old)
		t.entry.Zone, t.entry.Room = zone, room
		t.note("invites.delete", id, old.Invites.Name, old.Invites, nil)
		return nil
	})
}

// ErrNoCode: a room has no such invite code now.
var ErrNoCode = errors.New("there is no such invite code, or it has expired")

// RevokeInvite takes the uses that are left of a code, and returns its batch. The error is ErrNoCode if the room has no such code.
func (m *Manager) RevokeInvite(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, code string) (Invites, error) {
	s := m.State()
	if _, err := s.room(by, Edit, zone, room); err != nil {
		return Invites{}, err
	}
	h, ok := invite.Read(code)
	if !ok {
		return Invites{}, anteroom.Faults{{Path: "code", Problem: "is not an invite code", Fix: "16 letters and digits, like K7QM-2XHP-9D4T-W3FN"}}.Err()
	}
	now := m.now()
	for _, b := range s.invites {
		i := b.Invites
		if i.Room != room || over(i.ExpiresOn, now) || !b.has(h) {
			continue
		}
		// Of the code, the log gets what the store has: its hash.
		if err := m.act(ctx, by, "invites.revoke", zone, room, i.ID, map[string]string{"code": hex.EncodeToString(h[:])}); err != nil {
			return Invites{}, err
		}
		if err := invite.Keep(ctx, m.cfg.Link, invite.Use{Key: spentPrefix(i.ID) + hex.EncodeToString(h[:]), Until: i.ExpiresOn, Now: now}, i.Uses); err != nil {
			return Invites{}, unavailable(err)
		}
		return i, nil
	}
	return Invites{}, anteroom.Errorf(anteroom.NotFound, "%w", ErrNoCode)
}

// dropInvites drops a batch. What says which of its codes were used expires with them.
func (t *tx) dropInvites(b *storedInvites) {
	t.next.invites = without(t.next.invites, func(o *storedInvites) bool { return o.Invites.ID == b.Invites.ID })
	t.drop(invitesPrefix + b.Invites.ID)
}

// AnyCode is for visitors whom every code serves, in [Manager.Redeem].
const AnyCode = -1

// Redeem takes a use of a code for a visitor of a room, while the event is active; the same visitor has the same use again for a
// minute. The error is Denied if there is no such code here now, or no use left. It returns the priority of the lane that the code is
// for; 0 for none, or one that the room has no more.
//
// A visitor who has a place already gives its lane: only a code for a lane counts then, and one that would not raise the visitor
// keeps its use.
func (m *Manager) Redeem(ctx context.Context, room anteroom.RoomID, event anteroom.EventID, code invite.Hash, visitor anteroom.ID, placed int) (lane uint8, err error) {
	now, s, early := m.now(), m.State(), false
	for _, b := range s.invites {
		i := &b.Invites
		if i.Room != room || over(i.ExpiresOn, now) || !b.has(code) {
			continue
		}
		if i.Event != "" && i.Event != event {
			early = true
			continue
		}
		lane := s.laneOf(i)
		switch {
		case placed == AnyCode:
		case lane == 0:
			return 0, anteroom.Errorf(anteroom.Denied, "the invite code is for no lane")
		case int(lane) <= placed:
			return lane, nil
		}
		turn := m.redeeming[int(code[0])%len(m.redeeming)]
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return 0, unavailable(ctx.Err())
		}
		err := invite.Spend(ctx, m.cfg.Link, invite.Use{Key: spentPrefix(i.ID) + hex.EncodeToString(code[:]), Most: i.Uses, Until: i.ExpiresOn, By: hex.EncodeToString(visitor[:]), Now: now})
		<-turn
		if errors.Is(err, invite.ErrSpent) {
			return 0, anteroom.Errorf(anteroom.Denied, "the invite code was used")
		}
		if err != nil {
			return 0, unavailable(err)
		}
		return lane, nil
	}
	if early {
		return 0, anteroom.Errorf(anteroom.Conflict, "the event of the invite code is not active")
	}
	return 0, anteroom.Errorf(anteroom.Denied, "there is no such invite code")
}

// laneOf is the priority of the lane that a batch is for, as the room has it now; 0 for none.
func (s *State) laneOf(i *Invites) uint8 {
	if r := s.byID[i.Room]; r != nil && i.Lane != "" {
		for _, l := range r.Lanes {
			if l.Name == i.Lane {
				return uint8(l.Priority)
			}
		}
	}
	return 0
}

// HasLaneCodes reports whether there are codes by which visitors of a room get into one of its lanes.
func (m *Manager) HasLaneCodes(room anteroom.RoomID) bool {
	s, now := m.State(), m.now()
	return slices.ContainsFunc(s.invites, func(b *storedInvites) bool {
		return b.Invites.Room == room && s.laneOf(&b.Invites) > 0 && !over(b.Invites.ExpiresOn, now)
	})
}
