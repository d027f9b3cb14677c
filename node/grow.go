package node

// A process alone becomes the first site of a cluster: what its store has goes into the
// cluster's.

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

const (
	ledgerPrefix = "ledger."
	// grownKey is put when everything has been taken over.
	grownKey = "grown"
	// aloneSite is the name of a process alone in the ledger, see Config.Name.
	aloneSite = "local"
)

// Grow takes what a process alone has left in its store, whose link is old, into a cluster in
// which nothing has happened yet: configuration and all else that is shared, the ledger, and
// the journal, by shards. site is the hub's, and new the link of a process there. Sessions and
// places go on: the site is the successor of the process alone, charged for the units that
// that was charged for. Neither runs meanwhile, and the old store is not used again.
//
// When it was interrupted it is called again, and goes on. When everything has been taken over
// before, it does nothing. An error of kind Invalid says that the cluster has something else
// already.
func Grow(ctx context.Context, old, new cluster.Link, site string) error {
	if _, err := new.Site().Get(ctx, grownKey); err == nil || !errors.Is(err, cluster.ErrNotFound) {
		return err
	}
	incarnation, err := growLedger(ctx, old, new, site)
	if err != nil {
		return err
	}
	own, err := old.Journal(ctx, "")
	if err != nil {
		return err
	}
	events, last, err := readHistory(ctx, own, func(anteroom.RoomID) bool { return true })
	if err != nil {
		return fmt.Errorf("the previous journal cannot be read: %w", err)
	}
	var rooms [cluster.Shards][]anteroom.RoomID
	for _, room := range slices.Sorted(maps.Keys(events)) {
		i := cluster.ShardOf(string(room))
		rooms[i] = append(rooms[i], room)
	}
	for i := range rooms {
		if err := growShard(ctx, new, i, rooms[i], events, last); err != nil {
			return err
		}
		value, err := json.Marshal(standing{Incarnation: incarnation, Seen: time.Now().UTC()})
		if err != nil {
			return err
		}
		if err := putOnce(ctx, new.Site(), standingKey(i), value, func([]byte) bool { return true }); err != nil {
			return err
		}
	}
	keys, err := old.Keys(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if strings.HasPrefix(key, ledgerPrefix) {
			continue
		}
		entry, err := old.Get(ctx, key)
		if err != nil {
			return err
		}
		if err := putOnce(ctx, new, key, entry.Value, func(there []byte) bool { return bytes.Equal(there, entry.Value) }); err != nil {
			return err
		}
	}
	_, err = new.Site().Put(ctx, grownKey, []byte(site))
	return err
}

// putOnce sets a key that holds nothing; what it holds already must be right.
func putOnce(ctx context.Context, to cluster.Space, key string, value []byte, right func(there []byte) bool) error {
	_, err := to.Update(ctx, key, value, 0)
	if !errors.Is(err, cluster.ErrRevision) {
		return err
	}
	entry, err := to.Get(ctx, key)
	if err == nil && !right(entry.Value) {
		return anteroom.Errorf(anteroom.Invalid, "%s in the cluster already has other content: a standalone process can become a cluster, or join one with an empty data directory", key)
	}
	return err
}

// growLedger makes the accounts of the process alone those of the site. All rooms of a shard
// have one incarnation; the oldest that there may be are far below it.
func growLedger(ctx context.Context, old, new cluster.Link, site string) (incarnation uint64, err error) {
	keys, err := old.Keys(ctx, ledgerPrefix)
	if err != nil {
		return 0, err
	}
	records := make([]engine.LedgerRecord, len(keys))
	incarnation = 1
	for i, key := range keys {
		entry, err := old.Get(ctx, key)
		if err == nil {
			err = json.Unmarshal(entry.Value, &records[i])
		}
		if err != nil {
			return 0, fmt.Errorf("%s cannot be read: %w", key, err)
		}
		for _, s := range records[i].Sites {
			if s.Site.Name == aloneSite {
				incarnation = max(incarnation, s.Site.Incarnation)
			}
		}
	}
	for i, key := range keys {
		newest := uint64(0)
		for _, s := range records[i].Sites {
			if s.Site.Name == aloneSite {
				newest = max(newest, s.Site.Incarnation)
			}
		}
		for k := range records[i].Sites {
			s := &records[i].Sites[k].Site
			if s.Name != aloneSite {
				continue
			}
			s.Name = site
			if s.Incarnation == newest {
				s.Incarnation = incarnation
			}
		}
		value, err := json.Marshal(records[i])
		if err != nil {
			return 0, err
		}
		if err := putOnce(ctx, new.Site(), key, value, func(there []byte) bool { return bytes.Equal(there, value) }); err != nil {
			return 0, err
		}
	}
	return incarnation, nil
}

// growShard writes the events of a shard's rooms to its journal, those that are not there yet.
func growShard(ctx context.Context, to cluster.Link, shard int, rooms []anteroom.RoomID, events map[anteroom.RoomID][]engine.Event, last mark) error {
	name := fmt.Sprintf("%s%02d", siteRolePrefix, shard)
	own, err := to.Journal(ctx, name)
	if err != nil {
		return err
	}
	there, _, err := readHistory(ctx, own, func(anteroom.RoomID) bool { return true })
	if err != nil {
		return err
	}
	for room, list := range there {
		if len(list) > len(events[room]) || !slices.Equal(list, events[room][:len(list)]) {
			return anteroom.Errorf(anteroom.Invalid, "the cluster's journal %s already has other records", name)
		}
	}
	var b []byte
	write := func() error {
		if len(b) == 0 {
			return nil
		}
		err := own.Append(ctx, b)
		b = b[:0]
		return err
	}
	for _, room := range rooms {
		raw, err := hex.DecodeString(string(room))
		if err != nil {
			return err
		}
		fresh := true
		for _, e := range events[room][len(there[room]):] {
			if len(b) == 0 || len(b) > maxBatch {
				if err := write(); err != nil {
					return err
				}
				b, fresh = appendMark(b, last), true
			}
			if fresh {
				b, fresh = append(append(b, entryRoom), raw...), false
			}
			b = appendEvent(b, e)
		}
	}
	return write()
}
