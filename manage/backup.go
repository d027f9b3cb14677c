package manage

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket/invite"
)

// A backup is gzip of JSON lines: a header, one line for each document, custom page and audit
// record, and a last one with the SHA-256 of all bytes before it.
//
//	{"anteroom_backup":1,"made":"2026-11-27T10:00:00Z","seq":812}
//	{"key":"manage.room.5c…","document":{…}}
//	{"key":"manage.page.9a…","text":"<p>…"}
//	{"key":"manage.audit.0000000000000001","text":"7d… {…}"}
//	{"key":"invites.3a….9f…","document":2}
//	{"key":"keys.json","text":"{…}"}
//	{"lines":4,"sha256":"…"}
type backupHeader struct {
	Version int       `json:"anteroom_backup"`
	Made    time.Time `json:"made"`
	Seq     uint64    `json:"seq"`
}

type backupLine struct {
	Key      string          `json:"key,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
	Text     string          `json:"text,omitempty"`

	Lines  int    `json:"lines,omitempty"` // of the last line
	SHA256 string `json:"sha256,omitempty"`
}

const (
	backupVersion = 1
	keysLine      = "keys.json"

	// MaxBackup and maxBackupLine bound what Restore reads, in bytes after unpacking.
	MaxBackup     = 1 << 30
	maxBackupLine = 32 << 20

	restoreTime = 10 * time.Minute
)

// Backup writes everything that a manager keeps; of tokens only hashes. With keys, it includes the ticket keys: anyone
// who has them can make tickets, so keep such a file as secret as the keys.
func (m *Manager) Backup(ctx context.Context, by Caller, w io.Writer, keys bool) error {
	if err := by.need(Admin, "", ""); err != nil {
		return err
	}
	if m.cfg.Edge {
		return errOfCores
	}
	s := m.State()
	var secret []byte
	if keys {
		if m.cfg.Keys == nil {
			return anteroom.Errorf(anteroom.Unavailable, "this process has no ticket keys of its own")
		}
		var err error
		if secret, err = m.cfg.Keys.Export(); err != nil {
			return err
		}
	}
	what := map[string]bool{"keys": keys}
	if err := m.act(ctx, by, "backup.create", "", "", "", what); err != nil {
		if anteroom.KindOf(err) != anteroom.Unavailable {
			return err
		}
		if keys {
			return anteroom.Errorf(anteroom.Unavailable, "the audit log cannot record who gets the ticket keys; a backup without keys can be made: %w", err)
		}
		// It reads only, and is needed most while nothing can be changed.
		m.log.Warn("a backup is made that the audit log could not record", "actor", by.Name, "token", string(by.Token), "error", err)
	}
	b := &backupWriter{zip: gzip.NewWriter(w), sum: sha256.New()}
	b.line(backupHeader{backupVersion, m.now(), s.seq})
	docs, pages := s.documents()
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		data, err := marshal(docs[key])
		if err != nil {
			return err
		}
		b.line(backupLine{Key: key, Document: data})
	}
	for _, key := range slices.Sorted(maps.Keys(pages)) {
		b.line(backupLine{Key: key, Text: pages[key]})
	}
	if err := m.backupAudit(ctx, b, s.seq); err != nil {
		return err
	}
	if err := m.backupUses(ctx, b, s); err != nil {
		return err
	}
	if keys {
		b.line(backupLine{Key: keysLine, Text: string(secret)})
	}
	return b.end()
}

// backupUses writes how often invite codes were used.
func (m *Manager) backupUses(ctx context.Context, b *backupWriter, s *State) error {
	for _, batch := range s.invites {
		keys, err := m.cfg.Link.Keys(ctx, spentPrefix(batch.Invites.ID))
		if err != nil {
			return unavailable(err)
		}
		for _, key := range keys {
			uses, err := invite.Used(ctx, m.cfg.Link, key)
			if err != nil {
				return unavailable(err)
			}
			if uses > 0 { // else it has expired meanwhile
				b.line(backupLine{Key: key, Document: fmt.Append(nil, uses)})
			}
		}
	}
	return b.err
}

// backupAudit writes the records up to a number. Old ones may go while it does: then it
// begins with the oldest that is left.
func (m *Manager) backupAudit(ctx context.Context, b *backupWriter, last uint64) error {
	first, _, _, err := m.auditRange(ctx)
	if err != nil {
		return err
	}
	for seq := first; seq <= last && b.err == nil; seq++ {
		got, err := m.cfg.Link.Get(ctx, auditKey(seq))
		if err != nil {
			if now, _, _, e := m.auditRange(ctx); e == nil && now > seq {
				return anteroom.Errorf(anteroom.Conflict, "audit records were dropped while the backup was made; try again")
			}
			return readable(auditKey(seq), err)
		}
		b.line(backupLine{Key: auditKey(seq), Text: string(got.Value)})
	}
	return b.err
}

// documents returns what a state consists of, by key, and its custom pages.
func (s *State) documents() (docs map[string]any, pages map[string]string) {
	h := header{documentVersion, s.seq}
	account := s.account
	account.header = h
	docs, pages = map[string]any{accountKey: account}, map[string]string{}
	for _, z := range s.zones {
		if z.stored {
			docs[zonePrefix+string(z.ID)] = zoneDocument{h, z.made, z.Zone}
		}
	}
	for _, r := range s.rooms {
		if r.File {
			continue
		}
		docs[roomPrefix+string(r.ID)] = documentOf(r, s.seq)
		for _, c := range r.pages {
			pages[c.key] = c.html
		}
	}
	for id, c := range s.held {
		docs[heldPrefix+string(id)] = heldDocument{h, c}
	}
	for _, l := range s.lists {
		docs[listPrefix+string(l.ID)] = listDocument{h, l.made, l.List}
	}
	for _, t := range s.tokens {
		docs[tokenPrefix+string(t.ID)] = tokenDocument{h, *t}
	}
	for _, w := range s.hooks {
		docs[webhookPrefix+string(w.Webhook.ID)] = webhookDocument{h, *w}
	}
	for _, b := range s.invites {
		docs[invitesPrefix+b.Invites.ID] = invitesDocument{h, *b}
	}
	return docs, pages
}

type backupWriter struct {
	zip   *gzip.Writer
	sum   hash.Hash
	lines int
	err   error
}

func (b *backupWriter) line(v any) {
	data, err := json.Marshal(v)
	if b.err == nil {
		b.err = err
	}
	if b.err == nil {
		data = append(data, '\n')
		b.sum.Write(data)
		b.lines++
		_, b.err = b.zip.Write(data)
	}
}

func (b *backupWriter) end() error {
	b.line(backupLine{Lines: b.lines, SHA256: hex.EncodeToString(b.sum.Sum(nil))})
	return errors.Join(b.err, b.zip.Close())
}

// Restored says what a restore has brought.
type Restored struct {
	Made   time.Time `json:"made" doc:"When the backup was made."`
	Zones  int       `json:"zones"`
	Rooms  int       `json:"rooms"`
	Lists  int       `json:"lists"`
	Tokens int       `json:"tokens"`
	Keys   bool      `json:"keys" doc:"Whether the backup contained ticket keys, whose tickets are now valid."`
}

// backup is what Restore has read, checked for itself.
type backup struct {
	header backupHeader
	docs   map[string][]byte
	pages  map[string]string
	uses   map[string]int // of invite codes, by key
	keys   []byte
	sum    string
}

// Restore replaces everything with the contents of a backup, or changes nothing and returns what is wrong with it. The
// caller's own token stays. The audit log continues: the log in the backup is verified, but not restored.
func (m *Manager) Restore(ctx context.Context, by Caller, r io.Reader) (Restored, error) {
	if err := by.need(Admin, "", ""); err != nil {
		return Restored{}, err
	}
	b, err := readBackup(r)
	if err != nil {
		return Restored{}, err
	}
	if b.keys != nil {
		if m.cfg.Keys == nil {
			return Restored{}, anteroom.Errorf(anteroom.Invalid, "the backup has ticket keys, and this process has none of its own: make the backup without keys")
		}
		if err := m.cfg.Keys.Check(b.keys); err != nil {
			return Restored{}, err
		}
	}
	out := Restored{Made: b.header.Made.UTC(), Keys: b.keys != nil}
	err = m.changeWithin(ctx, restoreTime, by, func(t *tx) error {
		if err := t.restore(b, &out); err != nil {
			return err
		}
		return m.restoreUses(ctx, b)
	})
	if err != nil {
		return Restored{}, err
	}
	if b.keys != nil {
		if err := m.cfg.Keys.Import(ctx, b.keys); err != nil {
			return out, anteroom.Errorf(anteroom.Unavailable, "everything except the ticket keys was restored: %w", err)
		}
	}
	return out, nil
}

// restoreUses notes how often codes were used, before they are valid: nobody uses one once more in between. Of codes that are here
// already, the greater number counts.
func (m *Manager) restoreUses(ctx context.Context, b backup) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	var uses []invite.Use
	batch := &storedInvites{}
	for _, key := range slices.Sorted(maps.Keys(b.uses)) { // those of a batch one after the other
		id, code, _ := strings.Cut(strings.TrimPrefix(key, spentPrefixes), ".")
		var err error
		if batch == nil || batch.Invites.ID != id {
			batch, err = readInvites(invitesPrefix+id, b.docs[invitesPrefix+id])
		}
		if err == nil && (key != spentPrefix(id)+code || !batch.hasKey(code) || b.uses[key] < 1 || b.uses[key] > batch.Invites.Uses) {
			err = errors.New("no such code")
		}
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "the backup cannot be restored, and nothing was changed: %.100s is not a use of an invite code: %w", key, err)
		}
		uses = append(uses, invite.Use{Key: key, Until: batch.Invites.ExpiresOn, Now: m.now()})
	}
	for _, u := range uses {
		if u.Until.Before(u.Now) {
			continue
		}
		if err := invite.Keep(ctx, m.cfg.Link, u, b.uses[u.Key]); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

func (t *tx) restore(b backup, out *Restored) error {
	invalid := func(err error) error {
		return anteroom.Errorf(anteroom.Invalid, "the backup cannot be restored, and nothing was changed: %w", err)
	}
	docs := maps.Clone(b.docs)
	for key, html := range b.pages {
		docs[key] = []byte(html)
	}
	next, unused, err := t.m.build(docs, t.m.cfg.FileRooms)
	if err != nil {
		return invalid(err)
	}
	if len(unused) > 0 {
		return invalid(fmt.Errorf("nothing uses its page %s", unused[0]))
	}
	for _, r := range next.rooms {
		if r.File {
			continue
		}
		var loose anteroom.Faults // api.strict is for changes to come
		if f := append(loose, r.Check()...); len(f) > 0 {
			return invalid(fmt.Errorf("room %s: %w", r.Name, f.Err()))
		}
	}
	if err := next.checkRestored(); err != nil {
		return invalid(err)
	}
	for _, l := range next.lists {
		if err := next.checkList(&l.List).Err(); err != nil {
			return invalid(fmt.Errorf("list %s: %w", l.Name, err))
		}
	}
	if own, err := t.old.token(t.by.Token); err == nil {
		// As it is now: whoever has changed its secret since must not lose it, nor get the old
		// one back.
		all := put(next.tokens, own, func(o *token) bool { return o.ID == own.ID })
		slices.SortFunc(all, byBirth)
		next.setTokens(all)
	}
	if len(next.invites) > maxInviteBatches {
		return invalid(fmt.Errorf("it has %d batches of invite codes; at most %d", len(next.invites), maxInviteBatches))
	}
	if len(next.hooks) > anteroom.MaxWebhooks {
		return invalid(fmt.Errorf("it has %d webhooks; at most %d", len(next.hooks), anteroom.MaxWebhooks))
	}
	if len(next.zones) > maxZones || len(next.lists) > rules.MaxLists || len(next.tokens) > MaxTokens {
		return invalid(fmt.Errorf("it has %d zones, %d lists and %d tokens; at most %d, %d and %d", len(next.zones), len(next.lists), len(next.tokens), maxZones, rules.MaxLists, MaxTokens))
	}
	*t.next = *next
	t.next.seq, t.next.head, t.next.account.header = t.seq(), "", t.header()
	all, pages := t.next.documents()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := t.put(key, all[key]); err != nil {
			return err
		}
	}
	before, _ := t.old.documents()
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if all[key] == nil {
			t.drop(key)
		}
	}
	t.pages = pages
	t.done = append(t.done, func() {
		t.m.index = indexOf(t.next)
		t.m.countPagesOf(t.old, -1)
		t.m.countPagesOf(t.next, 1)
	})
	out.Zones, out.Rooms, out.Lists, out.Tokens = 0, 0, len(next.lists), len(next.tokens)
	for key := range all {
		switch {
		case strings.HasPrefix(key, zonePrefix):
			out.Zones++
		case strings.HasPrefix(key, roomPrefix):
			out.Rooms++
		}
	}
	t.note("backup.restore", b.sum, "", nil, map[string]any{"made": b.header.Made, "seq": b.header.Seq, "keys": out.Keys,
		"zones": out.Zones, "rooms": out.Rooms, "lists": out.Lists, "tokens": out.Tokens, "webhooks": len(next.hooks), "invites": len(next.invites)})
	return nil
}

// checkRestored finds what no operation would have made: names and ids go into paths, logs and
// files of others. The content of rooms and lists is checked apart.
func (s *State) checkRestored() error {
	type named struct{ kind, id string }
	var all []named
	zones := map[string]bool{}
	for _, z := range s.zones {
		if !z.stored {
			continue
		}
		if _, err := zoneName(z.Name); err != nil || zones[z.Name] {
			return fmt.Errorf("%.80q cannot be a zone's name, or is another's, too", z.Name)
		}
		zones[z.Name] = true
		all = append(all, named{"zone", string(z.ID)})
	}
	for _, r := range s.rooms {
		if r.File {
			continue
		}
		all = append(all, named{"waiting room", string(r.ID)})
		for _, e := range r.Events {
			all = append(all, named{"event", string(e.ID)})
		}
		for _, rule := range r.Rules {
			all = append(all, named{"rule", string(rule.ID)})
		}
	}
	for _, l := range s.lists {
		all = append(all, named{"list", string(l.ID)})
	}
	for _, t := range s.tokens {
		if err := (TokenSpec{Name: t.Name, Grants: t.Grants, Networks: t.Networks}).check(time.Time{}); err != nil || len(t.Secrets) == 0 {
			return fmt.Errorf("the token %.64q is not one that was made here: %w", t.ID, err)
		}
		all = append(all, named{"token", string(t.ID)})
	}
	for _, w := range s.hooks {
		if f := w.Webhook.Check(); len(f) > 0 || len(w.Secrets) == 0 {
			return fmt.Errorf("the webhook %.64q is not one that was made here: %w", w.Webhook.ID, f.Err())
		}
		all = append(all, named{"webhook", string(w.Webhook.ID)})
	}
	for _, b := range s.invites {
		if err := b.check(); err != nil {
			return err
		}
		all = append(all, named{"batch of invite codes", b.Invites.ID})
	}
	seen := map[named]bool{}
	for _, one := range all {
		if !isID(one.id) {
			return fmt.Errorf("%.64q is not the id of a %s", one.id, one.kind)
		}
		if seen[one] {
			return fmt.Errorf("there are two of the %s %s", one.kind, one.id)
		}
		seen[one] = true
	}
	return nil
}

// readBackup reads a backup to its end and checks that it is whole.
func readBackup(r io.Reader) (b backup, err error) {
	line := 0
	invalid := func(why string, args ...any) (backup, error) {
		return backup{}, anteroom.Errorf(anteroom.Invalid, "the backup cannot be restored, and nothing was changed: line %d: %w", line, fmt.Errorf(why, args...))
	}
	zip, err := gzip.NewReader(r)
	if err != nil {
		return invalid("it is not a gzip file: %w", err)
	}
	limited := &io.LimitedReader{R: zip, N: MaxBackup + 1}
	in := bufio.NewScanner(limited)
	in.Buffer(make([]byte, 64<<10), maxBackupLine)
	b = backup{docs: map[string][]byte{}, pages: map[string]string{}, uses: map[string]int{}}
	sum := sha256.New()
	prev, ended, pages := "", false, 0
	for in.Scan() {
		if line++; ended {
			return invalid("it continues after its end")
		}
		if line == 1 {
			if err := strictly(in.Bytes(), &b.header); err != nil || b.header.Version == 0 {
				return invalid("it is not a backup of Anteroom")
			}
			if b.header.Version != backupVersion {
				return invalid("it is of version %d and this program knows version %d: restore it with the Anteroom that made it", b.header.Version, backupVersion)
			}
			sum.Write(in.Bytes())
			sum.Write([]byte{'\n'})
			continue
		}
		var one backupLine
		if err := strictly(in.Bytes(), &one); err != nil {
			return invalid("it is damaged: %w", err)
		}
		_, twice := b.docs[one.Key]
		if _, used := b.uses[one.Key]; used {
			twice = true
		}
		switch {
		case one.SHA256 != "":
			if b.sum = hex.EncodeToString(sum.Sum(nil)); one.SHA256 != b.sum || one.Lines != line-1 {
				return invalid("it is damaged: a byte of it has changed, or lines are missing")
			}
			ended = true
		case twice:
			return invalid("%s is there twice", one.Key)
		case one.Key == keysLine:
			b.keys = []byte(one.Text)
		case strings.HasPrefix(one.Key, pagePrefix):
			// At once, and not with the rest: a small file unpacks to much.
			if pages += len(one.Text); one.Key != pageKey(one.Text) || len(one.Text) > anteroom.MaxTemplateBytes || pages > maxPages {
				return invalid("%.100s is not a custom page, or one too many", one.Key)
			}
			b.pages[one.Key] = one.Text
		case strings.HasPrefix(one.Key, spentPrefixes):
			uses := 0
			if err := json.Unmarshal(one.Document, &uses); err != nil {
				return invalid("%.100s: %w", one.Key, err)
			}
			if b.uses[one.Key] = uses; len(b.uses) > maxInviteBatches*maxInviteCodes {
				return invalid("it has more uses of invite codes than there can be")
			}
		case strings.HasPrefix(one.Key, auditPrefix):
			e, err := unseal(one.Key, []byte(one.Text))
			if err != nil {
				return invalid("%s: %w", one.Key, err)
			}
			if prev != "" && e.Prev != prev {
				return invalid("%s does not follow from the one before", one.Key)
			}
			prev = e.Hash
		case len(one.Document) > inflateLimit:
			return invalid("%.100s has %d bytes; at most %d", one.Key, len(one.Document), inflateLimit)
		case strings.HasPrefix(one.Key, keyPrefix) && len(one.Document) > 0:
			b.docs[one.Key] = bytes.Clone(one.Document)
		default:
			return invalid("unknown record %.80q", one.Key)
		}
		sum.Write(in.Bytes())
		sum.Write([]byte{'\n'})
	}
	switch {
	case limited.N <= 0:
		return invalid("it has more than %d bytes", MaxBackup)
	case in.Err() != nil:
		line++
		return invalid("it cannot be read: %w", in.Err())
	case !ended:
		return invalid("it is truncated: its last line is missing")
	}
	return b, nil
}

// strictly reads one JSON value with known members only.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the value")
	}
	return nil
}
