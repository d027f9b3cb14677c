package manage

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/rules"
)

// The documents. Each is one key, so that a change of one is atomic; docs/state.md lists them.
const (
	keyPrefix     = "manage."
	accountKey    = "manage.account"
	zonePrefix    = "manage.zone."
	roomPrefix    = "manage.room."
	listPrefix    = "manage.list."
	heldPrefix    = "manage.controls."
	tokenPrefix   = "manage.token."
	webhookPrefix = "manage.webhook."
	invitesPrefix = "manage.invites."
	pagePrefix    = "manage.page."
	auditPrefix   = "manage.audit."
	anchorKey     = "manage.anchor"
	stagePrefix   = "manage.stage."
	documentLimit = cluster.MaxValue - 4096 // a staged copy has room for its key
	inflateLimit  = 16 << 20
	packFrom      = 32 << 10 // documents from this size on are compressed

	documentVersion = 1
)

// header begins every document.
type header struct {
	Version int `json:"version"`
	// Seq is the number of the audit record that wrote it: redoing a record never puts an
	// older document over a newer one.
	Seq uint64 `json:"seq"`
}

type accountDocument struct {
	header
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Secret [32]byte `json:"secret"` // what ids and seeds of the file's events come from
}

type zoneDocument struct {
	header
	Made uint64        `json:"made"`
	Zone anteroom.Zone `json:"zone"`
}

type roomDocument struct {
	header
	Made uint64        `json:"made"`
	Room anteroom.Room `json:"room"` // custom pages left out
	Page string        `json:"page,omitempty"`
	// EventPages are the custom pages of events, which stand in the room as "".
	EventPages map[anteroom.EventID]string `json:"event_pages,omitempty"`
}

// heldDocument is the operator's hand on a room of the file; the other rooms' is in theirs.
type heldDocument struct {
	header
	Controls anteroom.Controls `json:"controls"`
}

type listDocument struct {
	header
	Made uint64        `json:"made"`
	List anteroom.List `json:"list"`
}

type tokenDocument struct {
	header
	token
}

// wayBack says what to do about a document that cannot be used.
const wayBack = "nothing was changed. To go back, stop Anteroom, move the directory \"store\" in its data directory aside, start it and restore your last backup with `anteroom restore FILE`; sessions and places come back from the visitors' cookies"

// marshal returns a document's JSON. What is not set is not in it, so that an earlier Anteroom, which refuses members that it does not know,
// can use whatever has none of its own.
func marshal(v any) ([]byte, error) {
	return jsonv2.Marshal(v, json.DefaultOptionsV1(), jsonv2.OmitZeroStructFields(true))
}

// encode returns a document's bytes.
func encode(v any) ([]byte, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	if len(data) > inflateLimit { // no more of it would be read again
		return nil, anteroom.Errorf(anteroom.Invalid, "this would have %d bytes in the store before compression, and at most %d are allowed: shorten its texts", len(data), inflateLimit)
	}
	if len(data) >= packFrom {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a valid level
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		data = b.Bytes()
	}
	if len(data) > documentLimit {
		return nil, anteroom.Errorf(anteroom.Invalid, "this would have %d bytes in the store, and at most %d are allowed: shorten its texts", len(data), documentLimit)
	}
	return data, nil
}

// unpack returns a document's JSON.
func unpack(data []byte) ([]byte, error) {
	if len(data) == 0 || data[0] != 0x1f { // how gzip begins and JSON never does
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, inflateLimit))
}

// decode reads a document's bytes, strictly.
func decode(key string, data []byte, v any) error {
	bad := func(why string, args ...any) error {
		return anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: %w; %s", key, fmt.Errorf(why, args...), wayBack)
	}
	data, err := unpack(data)
	if err != nil {
		return bad("it does not unpack: %w", err)
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return bad("it is not what was written: %w", err)
	}
	if h.Version != documentVersion {
		return bad("it is of version %d and this program knows version %d: it was written by another Anteroom, start that one", h.Version, documentVersion)
	}
	if err := strictly(data, v); err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return bad("it has %s, which this program does not know: it was written by another Anteroom, start that one", name)
		}
		return bad("it is not what was written: %w", err)
	}
	return nil
}

// readable turns damage that the link has found into what to do about it.
func readable(key string, err error) error {
	if _, damaged := errors.AsType[*cluster.DamagedError](err); damaged {
		return anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: %w; %s", key, err, wayBack)
	}
	return unavailable(err)
}

func unavailable(err error) error {
	if anteroom.KindOf(err) != anteroom.Other {
		return err
	}
	return anteroom.Errorf(anteroom.Unavailable, "the store does not answer: %w", err)
}

// pageKey is the key of a custom page: the same text is stored once.
func pageKey(html string) string {
	sum := sha256.Sum256([]byte(html))
	return pagePrefix + hex.EncodeToString(sum[:])
}

// documentOf returns the room as it is stored.
func documentOf(r *Served, seq uint64) roomDocument {
	d := roomDocument{header: header{documentVersion, seq}, Made: r.made, Room: copyRoom(r.Room)}
	if d.Room.CustomPageHTML != "" {
		d.Page, d.Room.CustomPageHTML = pageKey(d.Room.CustomPageHTML), ""
	}
	for i := range d.Room.Events {
		e := &d.Room.Events[i]
		if e.CustomPageHTML == nil || *e.CustomPageHTML == "" {
			continue
		}
		if d.EventPages == nil {
			d.EventPages = map[anteroom.EventID]string{}
		}
		d.EventPages[e.ID], *e.CustomPageHTML = pageKey(*e.CustomPageHTML), ""
	}
	return d
}

// served returns what a stored room says.
func (d roomDocument) served(key string, text func(key string) (string, bool), lists *rules.Lists, known map[string]*custom) (*Served, error) {
	r := d.Room
	missing := func(page string) error {
		return anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: its custom page %s is missing; %s", key, page, wayBack)
	}
	if d.Page != "" {
		html, ok := text(d.Page)
		if !ok {
			return nil, missing(d.Page)
		}
		r.CustomPageHTML = html
	}
	for i := range r.Events {
		if page := d.EventPages[r.Events[i].ID]; page != "" {
			html, ok := text(page)
			if !ok {
				return nil, missing(page)
			}
			r.Events[i].CustomPageHTML = &html
		}
	}
	one, err := compile(r, nil, lists, known)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: %w; %s", key, err, wayBack)
	}
	one.made = d.Made
	return one, nil
}
