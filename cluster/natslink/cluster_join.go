package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	// alonePatience is how long Join tries to reach the others before it goes on with the
	// last good copy.
	alonePatience = 3 * time.Second
	// closeBound is how long Close waits for Raft leaders to be handed to other cores.
	closeBound = 10 * time.Second

	// lingerFor is how long a core that has stepped aside serves the store after its process has given up its roles.
	lingerFor = 250 * time.Millisecond
)

// joined is a process's link into a cluster.
type joined struct {
	space // the shared one

	att   *attachment
	log   *slog.Logger
	copy  *keysCopy
	site  *siteSpace
	books *books // the journals

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	work  sync.WaitGroup
	touch struct{ site, shared touch }

	joining  chan struct{} // closed when everything is there
	fatal    chan error    // what trying again does not heal
	closing  sync.Once
	closeErr error
}

// Join makes this process part of a cluster. It returns when the site's store answers and
// the copy of the shared keys is complete, or after a few seconds with the last good copy,
// which Health then says; what is missing is tried for as long as the link is open. Without
// a copy it waits for the others until ctx ends. It fails when the configuration or the
// directory is wrong.
func Join(ctx context.Context, cfg ClusterConfig) (cluster.Link, error) {
	att, err := attach(ctx, cfg)
	if err != nil {
		return nil, err
	}
	j, err := newJoined(att)
	if err != nil {
		return nil, errors.Join(err, closeAttachment(att))
	}
	j.work.Go(j.settle)
	if err := j.await(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func closeAttachment(att *attachment) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	return att.close(ctx)
}

func newJoined(att *attachment) (*joined, error) {
	j := &joined{
		att: att, log: att.cfg.Log, joining: make(chan struct{}), fatal: make(chan error, 1),
	}
	j.ctx, j.stop = context.WithCancel(context.Background())
	hub, sharedMax := sharedStore(att, att.hubDomain)
	site, siteMax := siteStore(att)
	records, recordsMax := bookStore(att)
	if IsEdgeSecret(att.cfg.Secret) {
		hub.cores, site.cores = coresShared, coresSite
	}
	// A server takes what comes over one connection one after the other, and where it is
	// alone it syncs an append before it goes on: no message is to wait behind that.
	again := att.site.Opts
	nc, err := again.Connect()
	if err != nil {
		return nil, fmt.Errorf("natslink: connection for the journals: %w", err)
	}
	records.nc = nc
	hub.full = fmt.Sprintf("the shared keys take their %d bytes; delete some or raise the size of stream %s", sharedMax, hub.stream)
	site.full = fmt.Sprintf("the keys of the site take their %d bytes; delete some or raise the size of stream %s", siteMax, site.stream)
	records.full = fmt.Sprintf("the journals of the site take their %d bytes; shorten the retention or raise the size of stream %s", recordsMax, records.stream)

	if j.copy, err = openCopy(att.cfg.Dir, hub.subjects, j.log); err != nil {
		nc.Close()
		return nil, err
	}
	j.space = space{messages: messages{j: j, nc: att.shared, prefix: att.sharedName + ".m."}, hub: hub, copy: j.copy}
	j.Writes = j.space.change
	own := &siteSpace{messages: messages{j: j, nc: att.site, prefix: att.siteName + ".m."}, keys: site}
	own.Writes = own.change
	j.site = own
	j.books = &books{j: j, store: records, opened: map[string]bool{}, wake: make(chan struct{}, 1)}
	// An edge with a secret of its own may not hear of elections, and of servers that are not ours it is not known.
	if att.cfg.External != nil || IsEdgeSecret(att.cfg.Secret) {
		return j, nil
	}
	for _, s := range []*store{site, records} {
		if err := s.elections.follow(s.nc, s.stream); err != nil {
			nc.Close()
			return nil, errors.Join(err, j.copy.close())
		}
	}
	return j, nil
}

// await returns when the link can be used.
func (j *joined) await(ctx context.Context) error {
	var patience <-chan time.Time
	if !j.copy.empty() {
		patience = time.After(alonePatience)
	}
	select {
	case <-j.joining:
		return nil
	case err := <-j.fatal:
		return err
	case <-Removed(j):
		return errRemoved(j.att.cfg.Dir)
	case <-patience:
		h := j.Health()
		j.log.Warn("the rest of the cluster cannot be reached; this node goes on with its copy of the configuration and tries again",
			"site", h.Site.Detail, "shared", h.Shared.Detail)
		return nil
	case <-ctx.Done():
		h := j.Health()
		return fmt.Errorf("natslink: the cluster was not reached at %s, and there is no copy of its configuration in %s yet (%w): site: %s; shared: %s",
			j.tried(), j.att.cfg.Dir, ctx.Err(), cmp.Or(h.Site.Detail, "no answer"), cmp.Or(h.Shared.Detail, "no answer"))
	}
}

// tried returns the addresses at which others are looked for.
func (j *joined) tried() string {
	cfg := &j.att.cfg
	addresses := append(append(append([]string(nil), cfg.Join...), j.att.coreList()...), cfg.Hub...)
	if cfg.External != nil {
		addresses = append(addresses, cfg.External.URLs...)
	}
	if len(addresses) == 0 {
		return "its own store"
	}
	return strings.Join(addresses, ", ")
}

// settle makes what must be there, tells await, and goes on with what has to be done for
// as long as the link is open.
func (j *joined) settle() {
	if j.att.moving() {
		j.until("the other cores", &j.touch.site, j.moveIn)
	}
	var both sync.WaitGroup
	both.Go(func() { j.until("the site's store", &j.touch.site, j.settleSite) })
	both.Go(func() { j.until("the shared store", &j.touch.shared, j.settleShared) })
	both.Wait()
	if j.ctx.Err() == nil {
		close(j.joining)
	}
}

// until repeats a step until it succeeds or the link closes.
func (j *joined) until(what string, t *touch, step func(ctx context.Context) error) {
	const quiet = 10 * time.Second
	said := time.Time{}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := step(j.ctx)
		if err == nil || j.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errForever) {
			select {
			case j.fatal <- err:
			default:
			}
		}
		t.lost(err)
		if time.Since(said) > quiet {
			said = time.Now()
			j.log.Warn("waiting for "+what, "reason", err)
		}
		if !pause(j.ctx, wait) {
			return
		}
	}
}

// errForever marks what await must not wait for.
var errForever = errors.New("natslink: it does not fit")

// ready waits a moment for the site's store. What ends the wait before its time is for ever.
func (j *joined) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, alonePatience/2)
	defer cancel()
	err := j.att.ready(ctx)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errForever, err)
	}
	return err
}

func (j *joined) settleSite(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	if err := j.ready(bounded); err != nil {
		return err
	}
	if err := ensureSite(bounded, j.att); err != nil {
		return err
	}
	if err := j.enroll(bounded); err != nil {
		return err
	}
	j.touch.site.ok("")
	j.work.Go(j.watchSite)
	j.work.Go(j.books.keep)
	return nil
}

func (j *joined) settleShared(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	if err := j.ready(bounded); err != nil {
		return err
	}
	moment, end := context.WithTimeout(ctx, alonePatience/2)
	err := j.att.hubReady(moment)
	end()
	if err != nil {
		return j.att.unlinked(ctx, err)
	}
	near, info, err := ensureShared(bounded, j.att)
	if err != nil {
		return err
	}
	if err := j.att.noteHub(); err != nil {
		// A full disk keeps no core from serving: what the directory stores says the same.
		j.log.Warn("the data directory does not say whether this site is the hub", "reason", err)
	}
	name := info.Config.Metadata[metaStore]
	if err := j.copy.follows(name, info.State.LastSeq); err != nil {
		return err
	}
	f := &feed{j: j, copy: j.copy, hub: j.hub, near: near, store: name, target: info.State.LastSeq}
	if err := f.prune(bounded); err != nil {
		return err
	}
	j.work.Go(f.follow)
	j.work.Go(f.compare)
	j.work.Go(f.announce)
	if err := f.reach(ctx, info.State.LastSeq); err != nil {
		return nil // the link was closed
	}
	return nil
}

// Site returns the space of this site.
func (j *joined) Site() cluster.Space { return j.site }

func (j *joined) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	return j.books.take(ctx, name)
}

func (j *joined) Look(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	return j.books.look(ctx, name, from, fn)
}

func (j *joined) Retain(ctx context.Context, d time.Duration) error { return j.books.retain(ctx, d) }

// begin returns a context for a call that ends when the link closes, too.
func (j *joined) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if j.ctx.Err() != nil {
		return nil, nil, cluster.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	own, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(j.ctx, cancel)
	return own, func() { stop(); cancel() }, nil
}

// ended returns what a call that failed with err returns.
func (j *joined) ended(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if j.ctx.Err() != nil {
		return cluster.ErrClosed
	}
	if e := ctx.Err(); e != nil {
		return e
	}
	return err
}

// Close ends everything of the link, then the connections and the server.
func (j *joined) Close() error {
	j.closing.Do(func() {
		j.stop()
		j.work.Wait()
		j.books.store.nc.Close()
		if j.att.aside.Load() { // those who take the roles read what this core serves
			time.Sleep(lingerFor)
		}
		j.closeErr = errors.Join(closeAttachment(j.att), j.copy.close())
	})
	return j.closeErr
}
