package natslink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// touchEvery is how often the site's store is asked whether it is there.
const touchEvery = 2 * time.Second

// touch is what is known of a store.
type touch struct {
	mu     sync.Mutex
	good   bool
	since  time.Time
	heard  time.Time // when it was good last
	detail string
}

func (t *touch) ok(detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard = time.Now(); !t.good {
		t.good, t.since = true, t.heard
	}
	t.detail = detail
}

func (t *touch) lost(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.good || t.since.IsZero() {
		t.good, t.since = false, time.Now()
	}
	t.detail = err.Error()
}

func (t *touch) state() (cluster.Touch, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cluster.Touch{OK: t.good, Since: t.since, Detail: t.detail}, t.heard
}

// watchSite asks the site's store whether it is there, again and again.
func (j *joined) watchSite() {
	key := barrierKey
	if j.att.server != nil {
		key = j.att.server.rollKey()
	}
	for pause(j.ctx, touchEvery) {
		began := time.Now()
		found, err := j.site.keys.last(j.ctx, j.site.keys.subjects+key)
		if j.ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, errMissing) {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w; it has no majority, or is choosing a leader", err)
			}
			j.touch.site.lost(err)
			continue
		}
		if err == nil && j.att.server != nil {
			j.readRoll(j.ctx, found)
		}
		j.touch.site.ok(fmt.Sprintf("%s answered in %s", j.att.site.ConnectedServerName(), time.Since(began).Round(10*time.Microsecond)))
	}
}

// Health says what the link knows of its touch with the stores.
func (j *joined) Health() cluster.Health {
	h := cluster.Health{Hub: j.att.isHub(), SiteName: j.att.siteOf(), CutOff: j.att.deaf.Load()}
	var heard time.Time
	h.Site, _ = j.touch.site.state()
	h.Shared, heard = j.touch.shared.state()
	if !h.Shared.OK && !heard.IsZero() {
		h.Shared.Lag = time.Since(heard)
	}
	keys, damaged := j.copy.counts()
	pos, _ := j.copy.position()
	text := fmt.Sprintf("%d keys here, up to change %d", keys, pos)
	if damaged > 0 {
		text += fmt.Sprintf(", %d of them damaged", damaged)
	}
	if h.Shared.Detail != "" {
		text += "; " + h.Shared.Detail
	}
	h.Shared.Detail = text
	return h
}
