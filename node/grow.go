package node

// A standalone process becomes the first site of a cluster: its store moves into the cluster's.

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
	"github.com/anteroom/anteroom/ticket/account"
)

const (
	ledgerPrefix = "ledger."
	// grownKey is set when everything has been moved.
	grownKey = "grown"
	// aloneSite is the name of a standalone process in the ledger, see Config.Name.
	aloneSite = "local"
)

// Grow moves what a standalone process has left in its store, whose link is old, into a new cluster: configuration and
// everything else that is shared, the ledger, and the journal, by shards. site is the name of the hub, and new the link
// of a process there. Sessions and places continue: the site succeeds the process, and is charged for its units.
// Neither may run meanwhile, and the old store is not used again.
//
// After an interruption, call it again: it continues. If everything has been moved before, it does nothing. An error of
// kind Invalid means that the cluster already has other content.
func Grow(ctx context.Context, old, new cluster.Link, site string) error {
	// This key is written last, so it proves that all else is there.
	if _, err := new.Site().Get(ctx, grownKey); err == nil || !errors.Is(err, cluster.ErrNotFound) {
		return err
	}
	// The ledger first: without the charged units, a site could spend them a second time.
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
		// A journal without records would look like a lost one, so the incarnation is noted for every shard, also for
		// empty ones.
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
		// What visitors leave has to expire there too: moves, and the places of accounts (package account), which last for less.
		if strings.HasPrefix(key, movesPrefix) || strings.HasPrefix(key, account.KeyPrefix) {
			if _, err := new.Lease(ctx, key, entry.Value, 0, movesFor); err != nil && !errors.Is(err, cluster.ErrRevision) {
				return err
			}
			continue
		}
		if err := putOnce(ctx, new, key, entry.Value, func(there []byte) bool { return bytes.Equal(there, entry.Value) }); err != nil {
			return err
		}
	}
	_, err = new.Site().Put(ctx, grownKey, []byte(site))
	return err
}

// putOnce sets a key that has no value; an existing value must be right.
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

// growLedger turns the accounts of the process into accounts of the site. All rooms of a shard share one incarnation;
// the oldest possible ones are far below it.
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

// growShard writes the events of a shard's rooms to its journal, except those that are there already.
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
	// After an interruption, the journal holds the beginning of what is to be written, and nothing else.
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
