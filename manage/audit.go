package manage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// AuditRecord says who changed what. Records are numbered without a gap, and each holds the
// hash of the one before it.
type AuditRecord struct {
	Seq       uint64          `json:"seq" min:"1"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor" doc:"Name of the token, or of the person who has signed in; anteroom for what Anteroom did itself."`
	Token     TokenID         `json:"token,omitempty"`
	Address   string          `json:"address,omitempty"`
	Request   string          `json:"request,omitempty"`
	Operation string          `json:"operation" doc:"Like room.change."`
	Zone      anteroom.ZoneID `json:"zone,omitempty"`
	Room      anteroom.RoomID `json:"room,omitempty"`
	Object    string          `json:"object,omitempty" doc:"Id of what was changed."`
	Name      string          `json:"name,omitempty" doc:"Name of what was changed."`
	Changes   []FieldChange   `json:"changes,omitempty"`
	Omitted   int             `json:"omitted,omitempty" doc:"Number of changed fields that changes leaves out."`
	Prev      string          `json:"prev" doc:"Hash of the previous record, in hexadecimal digits."`
	Hash      string          `json:"hash,omitempty" required:"true" doc:"SHA-256 of the record as it is stored."`
}

// FieldChange is one field, before and after, as JSON; empty means that it was not there.
// Secrets are masked and long values cut.
type FieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// entry is a record with the writes that follow from it.
type entry struct {
	AuditRecord
	Writes []write `json:"writes,omitempty"`
	Staged int     `json:"staged,omitempty"` // or the number of keys that hold them
	Digest string  `json:"digest,omitempty"` // and the SHA-256 of what these hold
	// Tag is a part of these keys where several processes may be staging for the same number.
	Tag string `json:"tag,omitempty"`
}

// write sets a key, or deletes it.
type write struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value,omitempty"` // empty deletes
	packed []byte          // Value where that is no JSON
}

func (w write) bytes() []byte {
	if w.packed != nil {
		return w.packed
	}
	return w.Value
}

const (
	maxRecord  = 8 << 10 // bytes of a record; longer writes are staged
	maxFields  = 60
	maxShown   = 100 // bytes of a value in a FieldChange
	maxHolder  = 128 // bytes of an actor's or object's name
	pruneAhead = 64
)

func auditKey(seq uint64) string { return fmt.Sprintf("%s%016x", auditPrefix, seq) }

// stageKey is the i-th key of what the record has staged.
func (e entry) stageKey(i int) string {
	if e.Tag == "" {
		return fmt.Sprintf("%s%016x.%d", stagePrefix, e.Seq, i)
	}
	return fmt.Sprintf("%s%016x.%s.%d", stagePrefix, e.Seq, e.Tag, i)
}

// seal returns the stored form of an entry and its hash: the hash, a space and the JSON that
// it is of.
func (e entry) seal() (value []byte, hash string, err error) {
	e.Hash = ""
	data, err := json.Marshal(e)
	if err != nil {
		return nil, "", err
	}
	hash = hashOf(data)
	return append([]byte(hash+" "), data...), hash, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// unseal is the inverse of seal.
func unseal(key string, value []byte) (e entry, err error) {
	hash, data, found := strings.Cut(string(value), " ")
	if !found || hash != hashOf([]byte(data)) {
		return e, errors.New("its hash is not that of its text")
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return e, err
	}
	if key != auditKey(e.Seq) {
		return e, fmt.Errorf("it says that it is record %d", e.Seq)
	}
	e.Hash = hash
	return e, nil
}

// anchorDocument says where the log begins: older records were dropped.
type anchorDocument struct {
	header
	First uint64 `json:"first"`
	Prev  string `json:"prev"`
}

// Audit returns up to limit records with numbers above after, in their order; a limit of 0
// means as many as one call gives.
func (m *Manager) Audit(ctx context.Context, by Caller, after uint64, limit int) ([]AuditRecord, error) {
	if err := by.need(Admin, "", ""); err != nil {
		return nil, err
	}
	if limit <= 0 || limit > MaxAuditPage {
		limit = MaxAuditPage
	}
	first, _, last, err := m.auditRange(ctx)
	if err != nil {
		return nil, err
	}
	out := []AuditRecord{}
	for seq := max(first, after+1); seq <= last && len(out) < limit; seq++ {
		e, err := m.auditEntry(ctx, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, e.AuditRecord)
	}
	return out, nil
}

func (m *Manager) auditEntry(ctx context.Context, seq uint64) (entry, error) {
	key := auditKey(seq)
	got, err := m.cfg.Link.Get(ctx, key)
	if errors.Is(err, cluster.ErrNotFound) {
		return entry{}, anteroom.Errorf(anteroom.Unavailable, "audit record %d is missing", seq)
	}
	if err != nil {
		return entry{}, readable(key, err)
	}
	e, err := unseal(key, got.Value)
	if err != nil {
		return entry{}, anteroom.Errorf(anteroom.Unavailable, "audit record %d is not what was written: %w", seq, err)
	}
	return e, nil
}

// auditRange returns the numbers of the oldest and the newest record, and the hash before
// the oldest.
func (m *Manager) auditRange(ctx context.Context) (first uint64, prev string, last uint64, err error) {
	first, prev, err = m.anchor(ctx)
	if err != nil {
		return 0, "", 0, err
	}
	keys, err := m.cfg.Link.Keys(ctx, auditPrefix)
	if err != nil {
		return 0, "", 0, unavailable(err)
	}
	if len(keys) > 0 {
		if last, err = strconv.ParseUint(strings.TrimPrefix(keys[len(keys)-1], auditPrefix), 16, 64); err != nil {
			return 0, "", 0, anteroom.Errorf(anteroom.Unavailable, "the key %s is none of ours", keys[len(keys)-1])
		}
	}
	return first, prev, last, nil
}

// anchor returns the number of the oldest record and the hash before it.
func (m *Manager) anchor(ctx context.Context) (first uint64, prev string, err error) {
	got, err := m.cfg.Link.Get(ctx, anchorKey)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return 1, "", nil
	case err != nil:
		return 0, "", readable(anchorKey, err)
	}
	var a anchorDocument
	err = decode(anchorKey, got.Value, &a)
	return a.First, a.Prev, err
}

// VerifyAudit recomputes the chain of hashes and names the first record that does not fit. It returns the number of
// records and the hash of the newest one: if you note both elsewhere, you also notice a log that was rewritten as a
// whole.
func (m *Manager) VerifyAudit(ctx context.Context, by Caller) (records int, head string, err error) {
	if err := by.need(Admin, "", ""); err != nil {
		return 0, "", err
	}
	first, prev, last, err := m.auditRange(ctx)
	if err != nil {
		return 0, "", err
	}
	last = max(last, m.State().seq)
	for seq := first; seq <= last; seq++ {
		e, err := m.auditEntry(ctx, seq)
		if err != nil {
			return records, prev, err
		}
		if e.Prev != prev {
			return records, prev, anteroom.Errorf(anteroom.Unavailable, "audit record %d does not follow from the one before: one of the two was written anew", seq)
		}
		prev = e.Hash
		records++
	}
	return records, prev, nil
}

// changesOf compares two documents, either of which may be nil.
func changesOf(before, after any) (changes []FieldChange, omitted int) {
	old, now := fieldsOf(before), fieldsOf(after)
	all := maps.Clone(old)
	maps.Copy(all, now)
	maps.DeleteFunc(all, func(n, _ string) bool { return old[n] == now[n] })
	sorted := slices.Sorted(maps.Keys(all))
	size := 0
	for i, n := range sorted {
		c := FieldChange{Field: n, Before: shown(n, old[n]), After: shown(n, now[n])}
		size += len(c.Field) + len(c.Before) + len(c.After)
		if i == maxFields || size > maxRecord/4 {
			return changes, len(sorted) - i
		}
		changes = append(changes, c)
	}
	return changes, 0
}

// fieldsOf flattens a document: each field's path and its JSON.
func fieldsOf(v any) map[string]string {
	out := map[string]string{}
	if v == nil {
		return out
	}
	data, err := json.Marshal(v)
	if err != nil {
		return out
	}
	var tree any
	if json.Unmarshal(data, &tree) != nil {
		return out
	}
	flatten("", tree, out)
	return out
}

func flatten(path string, v any, out map[string]string) {
	under := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			flatten(under(snake(k)), member, out)
		}
	case []any:
		if strings.HasSuffix(path, "seed") {
			break
		}
		for i, member := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), member, out)
		}
		return
	case nil:
		return
	}
	if _, inner := v.(map[string]any); !inner {
		data, _ := json.Marshal(v) // it came from JSON
		out[path] = string(data)
	}
}

// snake spells a Go name as the API does: CustomPageHTML is custom_page_html.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		upper := c >= 'A' && c <= 'Z'
		if upper && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z' || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z') && name[i-1] != '_' {
			b.WriteByte('_')
		}
		if upper {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// shown is a value as an audit record has it.
func shown(field, value string) string {
	last := field[strings.LastIndexByte(field, '.')+1:]
	if value != "" && (last == "seed" || last == "secret" || strings.HasPrefix(field, "secrets[")) {
		return `"[secret]"`
	}
	return cut(value, maxShown)
}

// cut shortens a text to a number of bytes, between characters.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
