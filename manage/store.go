package manage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/wire"
)

// storeTime bounds the writes of a change. They do not end with the request that asked for
// them: a change is done or not, and the caller's patience has no part in it.
const storeTime = 30 * time.Second

// attempts is how often a change is tried when another process writes, too.
const attempts = 50

// ourselves is the caller of what a manager does on its own.
var ourselves = Caller{Name: "anteroom", Grants: []Grant{{Permission: Admin}}}

// tx is a change in the making.
type tx struct {
	m     *Manager
	by    Caller
	old   *State
	next  *State
	entry entry
	pages map[string]string // custom pages that the documents name
	now   time.Time
	// done is what the manager remembers beside the state.
	done []func()
}

// seq is the number that the change will have.
func (t *tx) seq() uint64 { return t.old.seq + 1 }

func (t *tx) header() header { return header{documentVersion, t.seq()} }

// put writes a document.
func (t *tx) put(key string, document any) error {
	data, err := encode(document)
	if err != nil {
		return err
	}
	w := write{Key: key, Value: data}
	if !json.Valid(data) {
		w.Value, w.packed = nil, data
	}
	t.entry.Writes = append(t.entry.Writes, w)
	return nil
}

func (t *tx) drop(key string) { t.entry.Writes = append(t.entry.Writes, write{Key: key}) }

// note says what the record tells.
func (t *tx) note(operation, object, name string, before, after any) {
	t.entry.Operation, t.entry.Object, t.entry.Name = operation, object, cut(name, maxHolder)
	t.entry.Changes, t.entry.Omitted = changesOf(before, after)
}

// errOfCores answers changes and backups at a process that may not write.
var errOfCores = anteroom.Errorf(anteroom.Elsewhere, "this node is an edge of the cluster: send the request to the admin address of a core")

// change runs one change: fn works on t.next, which is a copy, and may run again when
// somebody else was faster. A change without an operation noted changes nothing.
func (m *Manager) change(ctx context.Context, by Caller, fn func(t *tx) error) error {
	return m.changeWithin(ctx, storeTime, by, fn)
}

// changeAll is change for what needs a permission for everything.
func (m *Manager) changeAll(ctx context.Context, by Caller, may Permission, fn func(t *tx) error) error {
	if err := by.need(may, "", ""); err != nil {
		return err
	}
	return m.change(ctx, by, fn)
}

func (m *Manager) changeWithin(ctx context.Context, limit time.Duration, by Caller, fn func(t *tx) error) error {
	if m.cfg.Edge {
		return errOfCores
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for range attempts {
		err := m.attempt(ctx, by, fn)
		if !errors.Is(err, cluster.ErrRevision) {
			return err
		}
		if err := m.lost(ctx); err != nil {
			return err
		}
	}
	return anteroom.Errorf(anteroom.Conflict, "rooms are being changed by others; try again")
}

func (m *Manager) attempt(ctx context.Context, by Caller, fn func(t *tx) error) error {
	if err := m.settleDoubt(ctx); err != nil {
		return err
	}
	old := m.State()
	t := &tx{m: m, by: by, old: old, next: old.clone(), pages: map[string]string{}, now: m.now()}
	if err := fn(t); err != nil {
		return err
	}
	if t.entry.Operation == "" {
		return nil
	}
	if err := m.pagesFit(t.pages); err != nil {
		return err
	}
	if m.original != nil {
		m.hold(t)
		for key, use := range m.pages {
			if use.users <= 0 {
				m.forgetPage(key, use)
			}
		}
		return nil
	}
	finish, err := m.prepare(ctx, t.next)
	if err != nil {
		return unavailable(err)
	}
	if err := m.putPages(ctx, t.pages); err != nil {
		finish(false)
		return err
	}
	t.entry.AuditRecord.sign(by, t.now, old)
	hash, err := m.commit(ctx, t.entry)
	if err != nil {
		finish(false)
		return err
	}
	t.next.head = hash
	finish(true)
	m.hold(t)
	// The process's log keeps what the audit log drops one day. No values: they may be secret.
	r := &t.entry.AuditRecord
	m.log.Info("changed by an operator", "operation", r.Operation, "object", r.Object, "name", r.Name, "actor", r.Actor, "token", string(r.Token),
		"address", r.Address, "request", r.Request, "audit", r.Seq)
	m.dropPages(ctx)
	m.prune(ctx)
	return nil
}

// hold puts a change in force here.
func (m *Manager) hold(t *tx) {
	t.next.seq = t.seq()
	for _, f := range t.done {
		f()
	}
	m.state.Store(t.next)
}

// sign fills in who and when, and the place in the chain.
func (r *AuditRecord) sign(by Caller, now time.Time, after *State) {
	r.Seq, r.Prev, r.At = after.seq+1, after.head, now
	r.Actor, r.Token, r.Request = cut(by.Name, maxHolder), by.Token, cut(by.RequestID, maxHolder)
	if by.Address.IsValid() {
		r.Address = by.Address.String()
	}
}

// commit creates the record and does its writes. When it returns no error the change has
// happened, even if some of the writes are still to be done: the record holds them.
func (m *Manager) commit(ctx context.Context, e entry) (hash string, err error) {
	writes := e.Writes
	value, hash, err := e.seal()
	if err != nil {
		return "", err
	}
	if len(value) > maxRecord || slices.ContainsFunc(writes, func(w write) bool { return w.packed != nil }) {
		if !m.alone {
			e.Tag = newID()
		}
		if e.Staged, e.Digest, err = m.stage(ctx, e, writes); err != nil {
			return "", unavailable(err)
		}
		e.Writes = nil
		if value, hash, err = e.seal(); err != nil {
			return "", err
		}
	}
	key := auditKey(e.Seq)
	if _, err := m.cfg.Link.Update(ctx, key, value, 0); err != nil {
		if errors.Is(err, cluster.ErrRevision) {
			if e.Tag != "" { // else they are the other's now
				m.unstage(ctx, e)
			}
			return "", err
		}
		// It may be there all the same. The next change looks before it does anything.
		m.doubt = true
		return "", anteroom.Errorf(anteroom.Unavailable, "the change could not be stored: %w", err)
	}
	if err := m.write(ctx, e.Seq, writes); err != nil {
		m.pending = writes
		m.log.Error("a change was recorded, and its documents could not be written yet: it is in force, and they are written before the next change or at the next start", "audit", e.Seq, "error", err)
		return hash, nil
	}
	if m.alone {
		m.unstage(ctx, e)
	} else if e.Staged > 0 {
		m.stages = append(m.stages, stagedSince{e, time.Now()})
	}
	return hash, nil
}

// stage stores writes that are too long for a record.
func (m *Manager) stage(ctx context.Context, e entry, writes []write) (n int, digest string, err error) {
	var all, chunk []byte
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		_, err := m.cfg.Link.Put(ctx, e.stageKey(n), chunk)
		all = append(all, hashOf(chunk)...)
		n, chunk = n+1, nil
		return err
	}
	for _, w := range writes {
		one := frame(w)
		if len(chunk)+len(one) > cluster.MaxValue {
			if err := flush(); err != nil {
				return 0, "", err
			}
		}
		chunk = append(chunk, one...)
	}
	if err := flush(); err != nil {
		return 0, "", err
	}
	return n, hashOf(all), nil
}

// frame is a write as it is staged: its key and value with their lengths before them.
func frame(w write) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(w.Key)))
	b = binary.BigEndian.AppendUint32(append(b, w.Key...), uint32(len(w.bytes())))
	return append(b, w.bytes()...)
}

// unframe reads what frame has written.
func unframe(b []byte) (writes []write, err error) {
	r := wire.Read(b)
	for r.Left() > 0 {
		w := write{Key: string(r.Bytes(int(r.Big16())))}
		if value := r.Bytes(int(r.Big32())); len(value) > 0 {
			w.packed = bytes.Clone(value)
		}
		writes = append(writes, w)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return writes, nil
}

// staged returns the writes of a record, wherever they are.
func (m *Manager) staged(ctx context.Context, e entry) ([]write, error) {
	if e.Staged == 0 {
		return e.Writes, nil
	}
	var writes []write
	var all []byte
	for i := range e.Staged {
		key := e.stageKey(i)
		got, err := m.cfg.Link.Get(ctx, key)
		if errors.Is(err, cluster.ErrNotFound) {
			if _, begun := m.cfg.Link.Get(ctx, e.stageKey(0)); errors.Is(begun, cluster.ErrNotFound) {
				return nil, nil // they are removed, the first one first, when all is done
			}
		}
		if err != nil {
			return nil, readable(key, err)
		}
		more, err := unframe(got.Value)
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: %w; %s", key, err, wayBack)
		}
		all = append(all, hashOf(got.Value)...)
		writes = append(writes, more...)
	}
	if hashOf(all) != e.Digest {
		return nil, anteroom.Errorf(anteroom.Unavailable, "what audit record %d has staged is not what it says; %s", e.Seq, wayBack)
	}
	return writes, nil
}

// unstage removes what a record has staged: the first key first, which says that all is done.
func (m *Manager) unstage(ctx context.Context, e entry) {
	for i := range e.Staged {
		if err := m.cfg.Link.Delete(ctx, e.stageKey(i)); err != nil {
			m.log.Warn("staged documents could not be deleted before the next start", "error", err)
			return
		}
	}
}

// write does the writes of a record, but never puts an older document over a newer one.
func (m *Manager) write(ctx context.Context, seq uint64, writes []write) error {
	for _, w := range writes {
		got, err := m.cfg.Link.Get(ctx, w.Key)
		missing := errors.Is(err, cluster.ErrNotFound)
		if err != nil && !missing {
			return readable(w.Key, err)
		}
		if !missing && (m.alone || len(got.Value) > 0) {
			if have, err := seqOf(w.Key, got.Value); err != nil {
				return err
			} else if have >= seq {
				continue
			}
		}
		err = nil
		if value := w.bytes(); len(value) > 0 {
			_, err = m.cfg.Link.Update(ctx, w.Key, value, got.Revision)
		} else if !missing {
			// What is deleted leaves a mark in the store for good: of a key that has just gone, a node that is away meanwhile hears
			// nothing, and would have it in its copy forever.
			err = m.cfg.Link.Remove(ctx, w.Key, got.Revision)
		}
		if errors.Is(err, cluster.ErrRevision) {
			continue // somebody else has finished this record, or written a later one, and the copy here does not know it
		}
		if err != nil {
			return unavailable(fmt.Errorf("key %s: %w", w.Key, err))
		}
	}
	return nil
}

func seqOf(key string, value []byte) (uint64, error) {
	var h struct{ Seq uint64 }
	plain, err := unpack(value)
	if err == nil {
		err = json.Unmarshal(plain, &h)
	}
	if err != nil {
		return 0, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: %w; %s", key, err, wayBack)
	}
	return h.Seq, nil
}

// settleDoubt finishes what the last change has left: its writes, or the question whether
// it happened.
func (m *Manager) settleDoubt(ctx context.Context) error {
	if len(m.pending) > 0 {
		if err := m.write(ctx, m.State().seq, m.pending); err != nil {
			return err
		}
		m.pending = nil
	}
	if !m.doubt {
		return nil
	}
	next, err := m.load(ctx)
	if err != nil {
		return err
	}
	if next.head != m.State().head {
		finish, err := m.prepare(ctx, next)
		if err != nil {
			return unavailable(err)
		}
		finish(true)
		m.put(next)
	}
	m.doubt = false
	return nil
}

// load reads everything, finishing the last change first.
func (m *Manager) load(ctx context.Context) (*State, error) {
	for range attempts {
		s, err := m.loadOnce(ctx)
		if err != nil && s == nil {
			return nil, err
		}
		// What others have changed meanwhile may be read in part.
		_, moved := m.cfg.Link.Get(ctx, auditKey(s.seq+1))
		switch {
		case errors.Is(moved, cluster.ErrNotFound):
			return s, err
		case moved != nil:
			return nil, readable(auditKey(s.seq+1), moved)
		}
	}
	return nil, anteroom.Errorf(anteroom.Unavailable, "rooms are being changed by others; try again")
}

// loadOnce is load, if nobody else writes. A state with an error beside it says how far it came.
func (m *Manager) loadOnce(ctx context.Context) (*State, error) {
	whole := m.cfg.Link.Health().Shared.OK // before anything is read
	first, _, last, err := m.auditRange(ctx)
	if err != nil {
		return nil, err
	}
	if last == 0 {
		return m.found(ctx)
	}
	e, err := m.auditEntry(ctx, last)
	if err != nil {
		return nil, err
	}
	writes, err := m.staged(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := m.write(ctx, last, writes); err == nil {
		m.pending = nil
	} else if !errors.Is(err, cluster.ErrUnavailable) {
		return nil, err
	} else { // what is here is the last good copy, and is read
		m.pending = writes
	}
	keys, err := m.cfg.Link.Keys(ctx, keyPrefix)
	if err != nil {
		return nil, unavailable(err)
	}
	m.log0, m.logFirst = first, first
	docs := map[string][]byte{}
	var spare []string
	for _, key := range keys {
		switch {
		case strings.HasPrefix(key, auditPrefix):
			if key < auditKey(first) {
				m.logFirst = min(m.logFirst, seqOfKey(key))
			}
		case key == anchorKey:
		case strings.HasPrefix(key, stagePrefix):
			// Later on, or elsewhere, another process may be staging the next.
			if m.alone && m.State() == nil || key < stagePrefix+fmt.Sprintf("%016x", last) {
				spare = append(spare, key)
			}
		default:
			got, err := m.cfg.Link.Get(ctx, key)
			if errors.Is(err, cluster.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, readable(key, err)
			}
			if m.alone || len(got.Value) > 0 { // else it is on its way out
				docs[key] = got.Value
			}
		}
	}
	// Where this process reads a copy, the writes above may not be in it yet.
	for _, w := range writes {
		if have, err := seqOf(w.Key, docs[w.Key]); err == nil && have > last {
			continue
		}
		if docs[w.Key] = w.bytes(); len(w.bytes()) == 0 {
			delete(docs, w.Key)
		}
	}
	s, unused, err := m.build(docs, m.cfg.FileRooms)
	if err != nil {
		return &State{seq: last}, err
	}
	s.seq, s.head = last, e.Hash
	if m.copied = nil; !whole {
		m.copied = slices.Collect(maps.Keys(docs))
	}
	if !m.alone {
		for _, key := range unused {
			m.spareOne(ctx, key)
		}
		unused = nil
	}
	for _, key := range append(spare, unused...) {
		if err := m.cfg.Link.Delete(ctx, key); err != nil && (m.alone || !errors.Is(err, cluster.ErrUnavailable)) {
			return nil, unavailable(err)
		}
	}
	return s, nil
}

func seqOfKey(key string) (seq uint64) {
	fmt.Sscanf(strings.TrimPrefix(key, auditPrefix), "%x", &seq)
	return seq
}

// found makes the account, with which a store begins.
func (m *Manager) found(ctx context.Context) (*State, error) {
	keys, err := m.cfg.Link.Keys(ctx, keyPrefix)
	if err != nil {
		return nil, unavailable(err)
	}
	if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, auditPrefix) }) {
		return m.loadOnce(ctx) // another process has made it since the records were looked for
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, stagePrefix) && !strings.HasPrefix(key, pagePrefix) {
			return nil, anteroom.Errorf(anteroom.Unavailable, "there is a stored document %s, and no audit record says who wrote it; %s", key, wayBack)
		}
	}
	empty := &State{}
	a := accountDocument{header: header{documentVersion, 1}, ID: newID(), Name: "Anteroom", Secret: newSeed()}
	t := tx{m: m, old: empty}
	if err := t.put(accountKey, a); err != nil {
		return nil, err
	}
	t.note("account.create", a.ID, a.Name, nil, nil)
	t.entry.AuditRecord.sign(ourselves, m.now(), empty)
	_, err = m.commit(ctx, t.entry)
	if errors.Is(err, cluster.ErrRevision) { // another process was faster
		waiting, cancel := context.WithTimeout(ctx, arrival)
		defer cancel()
		m.awaitRecord(waiting, t.entry.Seq, nil, time.Now().Add(arrival))
		if _, err = m.auditEntry(ctx, t.entry.Seq); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	if len(m.pending) > 0 {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the store takes no documents")
	}
	return m.loadOnce(ctx)
}

// build makes a state from its documents, strictly. It returns the keys of custom pages that
// nobody names.
func (m *Manager) build(docs map[string][]byte, file []anteroom.Room) (s *State, unused []string, err error) {
	s = &State{byID: map[anteroom.RoomID]*Served{}, held: map[anteroom.RoomID]anteroom.Controls{}}
	account, ok := docs[accountKey]
	if !ok {
		return nil, nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s is missing; %s", accountKey, wayBack)
	}
	if err := decode(accountKey, account, &s.account); err != nil {
		return nil, nil, err
	}
	named := map[string]bool{}
	texts, known := map[string]string{}, map[string]*custom{}
	page := func(key string) (string, bool) {
		named[key] = true
		if html, ok := texts[key]; ok {
			return html, true
		}
		html := string(docs[key])
		if pageKey(html) != key {
			return "", false
		}
		texts[key] = html
		return html, true
	}
	var tokens []*token
	var rooms []string // they come last: their rules name lists
	for key, data := range docs {
		switch {
		case key == accountKey, strings.HasPrefix(key, pagePrefix):
		case strings.HasPrefix(key, zonePrefix):
			var d zoneDocument
			err = decode(key, data, &d)
			s.zones = append(s.zones, &storedZone{Zone: d.Zone, made: d.Made, stored: true})
		case strings.HasPrefix(key, roomPrefix):
			rooms = append(rooms, key)
		case strings.HasPrefix(key, heldPrefix):
			var d heldDocument
			err = decode(key, data, &d)
			s.held[anteroom.RoomID(strings.TrimPrefix(key, heldPrefix))] = d.Controls
		case strings.HasPrefix(key, listPrefix):
			var d listDocument
			err = decode(key, data, &d)
			s.lists = append(s.lists, &storedList{List: d.List, made: d.Made})
		case strings.HasPrefix(key, tokenPrefix):
			var d tokenDocument
			err = decode(key, data, &d)
			tokens = append(tokens, &d.token)
		case strings.HasPrefix(key, webhookPrefix):
			var one *storedWebhook
			one, err = readWebhook(key, data)
			s.hooks = append(s.hooks, one)
		case strings.HasPrefix(key, invitesPrefix):
			var one *storedInvites
			one, err = readInvites(key, data)
			s.invites = append(s.invites, one)
		default:
			err = anteroom.Errorf(anteroom.Unavailable, "the stored document %s is none that this program knows: it was written by another Anteroom, start that one, or restore a backup; %s", key, wayBack)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(s.lists, byBirth)
	if err := s.nameLists(); err != nil {
		return nil, nil, anteroom.Errorf(anteroom.Unavailable, "the stored lists cannot be used: %w; %s", err, wayBack)
	}
	for _, key := range rooms {
		var d roomDocument
		if err := decode(key, docs[key], &d); err != nil {
			return nil, nil, err
		}
		one, err := d.served(key, page, s.named, known)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range one.pages {
			known[c.html] = c
		}
		s.rooms = append(s.rooms, one)
		s.byID[one.ID] = one
	}
	for key := range docs {
		if strings.HasPrefix(key, pagePrefix) && !named[key] {
			unused = append(unused, key)
		}
	}
	slices.SortFunc(s.rooms, byBirth)
	slices.SortFunc(s.zones, byBirth)
	slices.SortFunc(tokens, byBirth)
	slices.SortFunc(s.hooks, byBirth)
	slices.SortFunc(s.invites, byBirth)
	s.setTokens(tokens)
	for _, r := range s.rooms {
		if !slices.ContainsFunc(s.zones, func(z *storedZone) bool { return z.Name == r.Zone }) {
			return nil, nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: its zone %s is missing; %s", roomPrefix+string(r.ID), r.Zone, wayBack)
		}
	}
	s, err = s.withFile(File{Rooms: file, CookieName: m.cfg.CookieName, Strict: m.cfg.Strict, Hosts: m.cfg.Hosts}, m.now())
	return s, unused, err
}

// pageUse is a stored custom page.
type pageUse struct {
	users int
	page  *custom
}

func (m *Manager) countAllPages(s *State) {
	m.pages, m.custom = map[string]pageUse{}, map[string]*custom{}
	m.countPagesOf(s, 1)
}

func (m *Manager) countPagesOf(s *State, by int) {
	for _, r := range s.rooms {
		if !r.File {
			m.countPages(r, by)
		}
	}
}

func (m *Manager) countPages(r *Served, by int) {
	for _, c := range r.pages {
		use, stored := m.pages[c.key]
		if !stored {
			use.page = c
			m.custom[c.html] = c
		}
		use.users += by
		m.pages[c.key] = use
	}
}

// pagesFit says whether there is space for more custom pages.
func (m *Manager) pagesFit(pages map[string]string) error {
	total := 0
	for _, use := range m.pages {
		total += len(use.page.html)
	}
	for key, html := range pages {
		if m.pages[key].users > 0 {
			continue
		}
		if total += len(html); total > maxPages {
			return anteroom.Faults{{Path: "custom_page_html", Problem: fmt.Sprintf("all custom pages together would have more than %d bytes", maxPages),
				Fix: "use the same page for several rooms, or smaller ones"}}.Err()
		}
	}
	return nil
}

// putPages stores custom pages before the documents that name them.
func (m *Manager) putPages(ctx context.Context, pages map[string]string) error {
	for key, html := range pages {
		if m.pages[key].users > 0 {
			continue
		}
		if _, err := m.cfg.Link.Put(ctx, key, []byte(html)); err != nil {
			return anteroom.Errorf(anteroom.Unavailable, "the change could not be stored: %w", err)
		}
	}
	return nil
}

// dropPages removes custom pages that nobody names any more. What fails stays until the next
// start.
func (m *Manager) dropPages(ctx context.Context) {
	for key, use := range m.pages {
		if use.users > 0 {
			continue
		}
		if !m.alone {
			m.spareOne(ctx, key)
		} else if err := m.cfg.Link.Delete(ctx, key); err != nil {
			m.log.Warn("an unused custom page could not be deleted before the next start", "error", err)
			return
		}
		m.forgetPage(key, use)
	}
}

func (m *Manager) forgetPage(key string, use pageUse) {
	delete(m.pages, key)
	delete(m.custom, use.page.html)
}

// prune drops old records once there are more than maxAuditRecords: first the anchor says
// where the log begins, some records ahead; then two of them go with each change.
func (m *Manager) prune(ctx context.Context) {
	last := m.State().seq
	if last >= m.log0+maxAuditRecords+pruneAhead {
		// Another process may have moved it already.
		if now, _, err := m.anchor(ctx); err != nil || now > m.log0 {
			m.log0 = max(m.log0, now)
			return
		}
		first := m.log0 + pruneAhead
		before, err := m.auditEntry(ctx, first-1)
		if err == nil {
			var data []byte
			if data, err = encode(anchorDocument{header{documentVersion, last}, first, before.Hash}); err == nil {
				_, err = m.cfg.Link.Put(ctx, anchorKey, data)
			}
		}
		if err != nil {
			m.log.Warn("old audit records could not be deleted yet", "error", err)
			return
		}
		m.log0 = first
	}
	for range 2 {
		if m.logFirst >= m.log0 {
			return
		}
		if err := m.cfg.Link.Delete(ctx, auditKey(m.logFirst)); err != nil {
			m.log.Warn("old audit records could not be deleted yet", "error", err)
			return
		}
		m.logFirst++
	}
}
