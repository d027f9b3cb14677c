package natslink

// The roll of cores, in the site's store: a core that is removed while it is down or hangs does not hear of it, and NATS lets
// it in again after a while. It would take roles, yet keep no copies, so that the site would stop with the next core that is lost.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/anteroom/anteroom/cluster"
)

const (
	// rollPrefix begins the keys of cores, by peerID.
	rollPrefix = "cores."
	// birthName is the file that tells a core's directory from every other one of the same name. A directory of an earlier
	// version has none; its birth is "".
	birthName = "anteroom-core"
	// maxRemoved bounds how many removed cores of one name are remembered.
	maxRemoved = 16
)

// rollEntry is what the roll says of the cores of one name.
type rollEntry struct {
	Birth   string   `json:"birth"` // of the directory that the last of them runs on
	Removed []string `json:"removed,omitempty"`
}

// birthOf returns the birth of a core's directory, and gives one to a directory that never had a store.
func birthOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, birthName))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	if _, err := os.Stat(filepath.Join(dir, engineName)); err == nil {
		return "", nil
	}
	birth := rand.Text()
	return birth, writeFile(dir, birthName, birth)
}

// errRemoved refuses the directory of a core that was removed.
func errRemoved(dir string) error {
	return fmt.Errorf("cluster: the other cores have removed this one: stop it for good, or delete %s and give it a new name to let it join as a new core", dir)
}

// changeRoll has change change what the roll says of the core with an id, until it reports that it has nothing to change.
func (j *joined) changeRoll(ctx context.Context, id string, change func(e *rollEntry, known bool) bool) error {
	key := rollPrefix + id
	for {
		var e rollEntry
		found, err := j.site.Get(ctx, key)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		known := err == nil && json.Unmarshal(found.Value, &e) == nil
		if !change(&e, known) {
			return nil
		}
		value, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("natslink: %w", err)
		}
		if _, err = j.site.Update(ctx, key, value, found.Revision); !errors.Is(err, cluster.ErrRevision) {
			return err
		}
	}
}

// enroll enters the core in this process in the roll. If the others have removed it, it is refused for good.
func (j *joined) enroll(ctx context.Context) error {
	s := j.att.server
	if s == nil {
		return nil
	}
	err := j.changeRoll(ctx, s.id(), func(e *rollEntry, known bool) bool {
		s.heedRoll(*e)
		if s.isRemoved() || known && e.Birth == s.birth {
			return false
		}
		e.Birth = s.birth
		return true
	})
	if s.isRemoved() {
		<-j.ctx.Done() // there is nothing more to do: see await, and Removed
		return j.ctx.Err()
	}
	if damaged := (*cluster.DamagedError)(nil); errors.As(err, &damaged) {
		j.log.Warn("what the site's store says of this core cannot be read", "error", err)
		return nil // no reason to stay away
	}
	return err
}

// strike notes that the core with an id was removed: it may not have heard that.
func (j *joined) strike(ctx context.Context, id, node string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*apiTimeout)
	defer cancel()
	for {
		err := j.changeRoll(ctx, id, func(e *rollEntry, known bool) bool {
			if known && slices.Contains(e.Removed, e.Birth) {
				return false
			}
			e.Removed = append(e.Removed, e.Birth)
			e.Removed = e.Removed[max(0, len(e.Removed)-maxRemoved):]
			return true
		})
		if err == nil {
			return nil
		}
		if !pause(ctx, minBackoff) {
			return fmt.Errorf("cluster: core %q was removed, but the store of its site does not say so: do not start it again on its data directory: %w", node, err)
		}
	}
}

// CameLast returns those among all cores of the link's site that came last, as many as there are more of them than are listed:
// each has come in the place of another. One that is not in the roll yet has come after all others: it waits for what it needs to
// begin.
func CameLast(ctx context.Context, l cluster.Link, all []Core) (last []Core, _ error) {
	j, ok := l.(*joined)
	if !ok {
		return nil, errNoCluster
	}
	came := make([]uint64, len(all))
	for i, c := range all {
		e, err := j.site.Get(ctx, rollPrefix+c.id)
		switch {
		case err == nil:
			came[i] = e.Revision
		case errors.Is(err, cluster.ErrNotFound):
			came[i] = math.MaxUint64
		default:
			return nil, err
		}
	}
	for i, c := range all {
		later := 0
		for _, other := range came {
			if other > came[i] {
				later++
			}
		}
		if later < len(all)-len(j.att.coreList()) {
			last = append(last, c)
		}
	}
	return last, nil
}

// removePeer removes the core with an id, so that at least so many are left, and notes that.
func (j *joined) removePeer(ctx context.Context, id, node string, least int) error {
	if err := j.att.removePeer(ctx, id, node, least); err != nil || j.att.server.isRemoved() {
		return err // a core that has removed itself knows
	}
	return j.strike(ctx, id, node)
}

// rollKey is the key of the core in this process.
func (s *coreServer) rollKey() string { return rollPrefix + s.id() }

func (s *coreServer) id() string { return peerID(s.cfg.Site + "." + s.cfg.Node) }

// heedRoll hears what the roll says of the core in this process.
func (s *coreServer) heedRoll(e rollEntry) {
	if slices.Contains(e.Removed, s.birth) {
		s.retire()
	}
}

// readRoll reads the entry of the core in this process, and retires it if the others have removed it. The process may have
// hung meanwhile.
func (j *joined) readRoll(ctx context.Context, r row) {
	s := j.att.server
	stored, err := j.site.open(ctx, s.rollKey(), r)
	var e rollEntry
	if err == nil && stored.kind == kindValue {
		err = json.Unmarshal(stored.data, &e)
	}
	if err != nil {
		j.log.Warn("what the site's store says of this core cannot be read", "error", err)
		return
	}
	s.heedRoll(e)
}
