package natslink

// One core becomes one of several, and one of several becomes the only one, without an end of the process. Revisions
// and the ends of journals stay what they are, and with them roles, fences and what callers have read.
//
// From one to several, NATS must begin on an empty directory. So the store moves aside, and once the other cores have
// let this one in, its streams are restored to them. From several to one, this core takes the only copy of each stream;
// a server by itself then finds them where they are.
//
// What a directory holds changes in these steps, and a start goes on from each:
//
//	single            the store of a core alone
//	growing           the same, maybe in before/ already: a start puts it back
//	member, before/   the others may have some of it: a start restores the rest to them
//	member            the store of one of several, until it has become that of a core alone

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/anteroom/anteroom/cluster"
)

const (
	// coresName is the file with the addresses of the cores that the store of one of several is shared with.
	coresName = "anteroom-cores"
	// beforeName is the directory with the store of a core alone, until the other cores have all of it.
	beforeName = "before"
	// nextName is the directory in which a core alone gets to know the others.
	nextName = "next"

	// meetWithin bounds how long the other cores may take to let a core in.
	meetWithin = 15 * time.Second
	// leaveWithin bounds how long the last other core may take to hear that it is removed, and to end. What is written
	// meanwhile is kept by this one already.
	leaveWithin = 8 * time.Second
)

// Grow makes the only core of its site one of several, which are cores by their addresses: the link's own is the first
// among them. The others must run with the same list, and have no store yet. Nothing can be written meanwhile. After an
// error the core is alone as before. sure is called when nothing speaks against it, and its error ends it. complete reports whether the others have copies of
// everything; else they are still being made.
func Grow(ctx context.Context, l cluster.Link, cores []string, sure func() error) (complete bool, err error) {
	j, ok := l.(*joined)
	if !ok {
		return false, errNoCluster
	}
	if j.att.server == nil {
		return false, errNotCore
	}
	a := j.att
	if n := len(a.coreList()); n > 1 {
		return false, fmt.Errorf("cluster: this core is one of %d already", n)
	}
	cfg := a.cfg
	cfg.Cores = cores
	if shape, err := checkCluster(cfg); err != nil {
		return false, err
	} else if shape != shapeMember {
		return false, errors.New("cluster: cores lists no others: list 3 or 5, this one first")
	}
	addresses, err := parseAddresses(cores)
	if err != nil {
		return false, err
	}
	listen, err := parseAddress(cfg.Listen)
	if err != nil {
		return false, err
	}
	own, err := ownAmong(ctx, addresses, listen)
	if err != nil {
		return false, err
	}
	if own != addresses[0] {
		return false, fmt.Errorf("cluster: %s is not the first of cores: list it first at every core, because the first core brings the data", own.at(portNodes))
	}
	for _, other := range addresses[1:] {
		if err := a.probe(ctx, other); err != nil {
			return false, err
		}
	}
	if err := a.meet(ctx, cores, sure); err != nil {
		return false, err
	}
	done := make(chan struct{})
	j.work.Go(func() {
		defer close(done)
		j.until("the other cores", &j.touch.site, j.moveIn)
	})
	select {
	case <-done:
		return j.ctx.Err() == nil, nil
	case <-ctx.Done():
		return false, nil
	}
}

// Shrink makes the core of a link the only one of its site. Those that run end when they are removed; a majority must
// run. Nothing can be written for a moment. After an error, Shrink may be repeated.
func Shrink(ctx context.Context, l cluster.Link) error {
	j, ok := l.(*joined)
	if !ok {
		return errNoCluster
	}
	if j.att.server == nil {
		return errNotCore
	}
	a, s := j.att, j.att.server
	own := peerID(s.cfg.Site + "." + s.cfg.Node)
	// Two are left, so that no others can go on without this one, and a majority runs until the end.
	var last []Core
	for {
		all, err := a.cores(ctx)
		if err != nil {
			return err
		}
		last = slices.DeleteFunc(all, func(c Core) bool { return c.id == own })
		if len(last) < 2 {
			break
		}
		i := max(0, slices.IndexFunc(last, func(c Core) bool { return !c.Runs }))
		if err := j.removePeer(ctx, last[i].id, last[i].Node, leastCores); err != nil {
			return err
		}
	}
	if len(last) == 0 {
		return errors.New("cluster: this core is the only one of its site already")
	}
	if err := a.takeCopies(ctx, a.site, last[0].Node); err != nil {
		return err
	}
	if err := a.takeCopies(ctx, a.shared, last[0].Node); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	// From here on a start goes on alone.
	if err := s.noteShape(shapeSingle); err != nil {
		return err
	}
	moment, end := context.WithTimeout(ctx, leaveWithin)
	err := a.removePeer(moment, last[0].id, last[0].Node, 0)
	end()
	if err != nil {
		a.cfg.Log.Warn("the last other core was not told that it is removed: stop it, it is of no use any more", "core", last[0].Node, "error", err)
	} else {
		a.awaitGone(ctx, last[0].Node)
	}
	life, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	shut(s.srv())
	s.cfg.Cores, s.shape = nil, shapeSingle
	a.setCores(nil)
	err = s.launch(life)
	a.reconnect()
	if err != nil {
		return fmt.Errorf("%w; the core stands still until it is started again", err)
	}
	a.cfg.Log.Warn("this core is the only one of its site now")
	if err := a.ready(life); err != nil {
		return err
	}
	return j.strike(life, last[0].id, last[0].Node)
}

// Founds reports whether the process of a link is the core that its site begins with: the first of several, or the only
// one.
func Founds(l cluster.Link) bool {
	j, ok := l.(*joined)
	return ok && j.att.core && j.att.founds(j.ctx)
}

// ListedCores returns the addresses of the cores of a link's site, as the core in this process has them; none where it
// is the only one.
func ListedCores(l cluster.Link) []string {
	j, ok := l.(*joined)
	if !ok || j.att.server == nil {
		return nil
	}
	return j.att.coreList()
}

func (a *attachment) coreList() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg.Cores
}

func (a *attachment) setCores(cores []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg.Cores, a.replicas = cores, max(1, len(cores))
}

// founds reports whether this core makes the streams of its site: the first of several does, so that a core which
// brings its store finds none.
func (a *attachment) founds(ctx context.Context) bool {
	cores, err := parseAddresses(a.coreList())
	if err != nil || len(cores) < 2 {
		return true
	}
	listen, err := parseAddress(a.cfg.Listen)
	if err != nil {
		return true
	}
	own, err := ownAmong(ctx, cores, listen)
	return err != nil || own == cores[0]
}

// probe returns an error that says why a core cannot be one of several with this one.
func (a *attachment) probe(ctx context.Context, other address) error {
	at := other.at(portNodes)
	nc, err := a.dial(at, apiTimeout)
	if err != nil {
		return fmt.Errorf("cluster: the core at %s does not answer (start it first, with the same cores and an empty data directory): %w", at, explain(err))
	}
	defer nc.Close()
	site, node, _ := strings.Cut(nc.ConnectedServerName(), ".")
	if site != a.siteOf() || node == a.cfg.Node {
		return fmt.Errorf("cluster: at %s is node %q of site %q: it must be another core of site %q", at, node, site, a.siteOf())
	}
	// Cores that have never had a store have no leader before this one comes, and one that has had one has a leader.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if streams, err := lookStreams(ctx, nc, "", false); err == nil && len(streams) > 0 {
		return fmt.Errorf("cluster: the core at %s has a store already, with stream %s: stop it, and start it with an empty data directory", at, streams[0].Name)
	}
	return nil
}

// meet makes the server one of several. If they do not let it in, it goes on as before.
func (a *attachment) meet(ctx context.Context, cores []string, sure func() error) error {
	s := a.server
	s.changing.Lock()
	defer s.changing.Unlock()
	dir := s.cfg.Dir
	if err := a.introduce(ctx, cores); err != nil {
		return err
	}
	if err := sure(); err != nil {
		return err
	}
	err := writeFile(dir, coresName, strings.Join(cores, "\n")+"\n")
	if err == nil {
		err = s.noteShape(shapeGrowing)
	}
	if err != nil {
		return err
	}
	shut(s.srv())
	if err = setAside(dir); err == nil {
		s.cfg.Cores, s.shape = cores, shapeMember
		if err = s.launch(ctx); err == nil {
			a.reconnect()
			err = a.await(ctx, a.site, a.siteWatch, "the other cores do not answer any more", a.answers)
		}
		if err == nil {
			err = s.noteShape(shapeMember)
		}
	}
	if err == nil {
		a.setCores(cores)
		return nil
	}
	// What follows has to happen although the caller may have gone.
	life, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	shut(s.srv())
	s.cfg.Cores, s.shape = nil, shapeSingle
	undone := putBack(dir)
	if undone == nil {
		undone = s.noteShape(shapeSingle)
	}
	if undone == nil {
		undone = s.launch(life)
	}
	a.reconnect()
	if undone != nil {
		return fmt.Errorf("%w; the core stands still until it is started again: %w", err, undone)
	}
	return fmt.Errorf("%w; this core goes on alone", err)
}

// introduce has the other cores let this one in, while it still serves alone: cores that have never had a store begin
// when the last one comes, and that takes seconds.
func (a *attachment) introduce(ctx context.Context, cores []string) error {
	s := a.server
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	cfg := s.cfg
	cfg.Dir, cfg.Cores = filepath.Join(cfg.Dir, nextName), cores
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	srv, err := s.boot(ctx, cfg, shapeMember, func(o *server.Options) {
		// The ports for nodes and sites are in use, and so is the link to the hub. NATS has no routes without a port for
		// clients.
		o.Host, o.Port, o.ClientAdvertise, o.Cluster.NoAdvertise = "127.0.0.1", server.RANDOM_PORT, "", true
		o.LeafNode = server.LeafNodeOpts{}
	})
	if err != nil {
		return err
	}
	defer shut(srv)
	nc, err := inProcess(srv, s.site)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := a.await(ctx, nc, &watcher{}, "the other cores do not accept this one", func(ctx context.Context) error {
		_, err := accountInfo(ctx, nc, "")
		return err
	}); err != nil {
		return err
	}
	streams, err := lookStreams(ctx, nc, "", false)
	if err == nil && len(streams) > 0 {
		return fmt.Errorf("cluster: the other cores have a store already, with stream %s: empty their data directories", streams[0].Name)
	}
	return err
}

// answers returns an error while the site's store has no leader.
func (a *attachment) answers(ctx context.Context) error {
	_, err := accountInfo(ctx, a.site, "")
	return err
}

// inProcess connects to a server as one of its accounts.
func inProcess(srv *server.Server, key nkeys.KeyPair) (*nats.Conn, error) {
	sign, err := withKey(key)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv), sign, nats.NoReconnect())
	if err != nil {
		return nil, fmt.Errorf("natslink: connection to the embedded server: %w", err)
	}
	return nc, nil
}

// noteShape writes down what the directory holds from now on.
func (s *coreServer) noteShape(shape string) error {
	return writeLayout(s.cfg.Dir, layout{s.cfg.Cluster, s.cfg.Site, s.cfg.Node, shape})
}

// reconnect makes the connections try at once: the server has been started again.
func (a *attachment) reconnect() {
	for _, nc := range []*nats.Conn{a.site, a.shared, a.system} {
		nc.ForceReconnect() // an error says that it is closed
	}
}

// setAside moves the store of a core alone to where it is kept until the others have it, and puts in its place what the
// core knows of the others.
func setAside(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, beforeName), 0o700); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, engineName), filepath.Join(dir, beforeName, engineName)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, nextName, engineName), filepath.Join(dir, engineName)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return errors.Join(syncDir(filepath.Join(dir, beforeName)), syncDir(dir))
}

// putBack undoes setAside, however far that came.
func putBack(dir string) error {
	aside := filepath.Join(dir, beforeName, engineName)
	if _, err := os.Stat(aside); err == nil {
		if err := os.RemoveAll(filepath.Join(dir, engineName)); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		if err := os.Rename(aside, filepath.Join(dir, engineName)); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cluster: %w", err)
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, beforeName)), os.RemoveAll(filepath.Join(dir, nextName)), syncDir(dir))
}

// moving reports whether the other cores may lack what this one kept alone.
func (a *attachment) moving() bool {
	_, err := os.Stat(filepath.Join(a.cfg.Dir, beforeName))
	return a.core && err == nil
}

// moveIn gives the cores what this one kept alone, as far as they do not have it.
func (j *joined) moveIn(ctx context.Context) error {
	a, s := j.att, j.att.server
	if err := a.ready(ctx); err != nil {
		return err
	}
	for _, account := range []struct {
		name string
		to   *nats.Conn
	}{{accountSite, a.site}, {accountShared, a.shared}} {
		dir := filepath.Join(s.cfg.Dir, beforeName, engineName, account.name, "streams")
		streams, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cluster: %w", err)
		}
		for _, stream := range streams {
			if err := moveStream(ctx, filepath.Join(dir, stream.Name()), account.to); err != nil {
				return fmt.Errorf("natslink: stream %s for the other cores: %w", stream.Name(), err)
			}
		}
	}
	if err := ensureSite(ctx, a); err != nil {
		return err
	}
	if a.isHub() {
		if _, _, err := ensureShared(ctx, a); err != nil {
			return err
		}
	}
	if !AwaitWhole(ctx, j) {
		return ctx.Err()
	}
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, beforeName)); err != nil {
		return fmt.Errorf("cluster: the store of before, which the other cores have: %w", err)
	}
	a.cfg.Log.Warn("this core is one of several now, and the others have copies of everything", "cores", a.coreList())
	return nil
}

// moveStream restores the stream in a directory of a server that has ended, with one copy: it is there only when it is
// complete. One that is there already was moved before. Mirrors are made from their origin.
func moveStream(ctx context.Context, dir string, to *nats.Conn) error {
	js, err := newJetStream(to, "")
	if err != nil {
		return err
	}
	name := filepath.Base(dir)
	if _, err := js.Stream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	meta, err := os.ReadFile(filepath.Join(dir, server.JetStreamMetaFile))
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(meta, &config); err != nil {
		return err
	}
	if config["mirror"] != nil {
		return nil
	}
	delete(config, "Created")
	config["num_replicas"] = json.RawMessage("1")
	var restore struct {
		To string `json:"deliver_subject"`
	}
	if err := askFor(ctx, to, "$JS.API.STREAM.RESTORE."+name, map[string]any{"config": config, "state": struct{}{}}, &restore); err != nil {
		if strings.Contains(err.Error(), "already in use") {
			err = errors.Join(err, js.DeleteStream(ctx, name)) // nobody has it: a restore broke off
		}
		return err
	}
	parts := &partWriter{ctx: ctx, to: to, subject: restore.To}
	if err := archive(dir, parts); err != nil {
		return err
	}
	if err := askFor(ctx, to, restore.To, nil, nil); err != nil {
		return err
	}
	for {
		there, err := js.Stream(ctx, name)
		if err == nil && there.CachedInfo().Cluster != nil && there.CachedInfo().Cluster.Leader != "" {
			return nil
		}
		if !pause(ctx, minBackoff) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// archive writes the files of a stream as NATS restores them: its configuration and its records. The summary is made
// from these.
func archive(dir string, to io.Writer) error {
	packed := s2.NewWriter(to, s2.WriterUncompressed(), s2.WriterConcurrency(1))
	files := tar.NewWriter(packed)
	blocks, err := filepath.Glob(filepath.Join(dir, "msgs", "*.blk"))
	if err != nil {
		return err
	}
	for _, path := range append([]string{filepath.Join(dir, server.JetStreamMetaFile)}, blocks...) {
		if err := addFile(files, dir, path); err != nil {
			return err
		}
	}
	return errors.Join(files.Close(), packed.Close())
}

func addFile(to *tar.Writer, dir, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Size: info.Size(), Mode: 0o600}); err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}

// restorePart is how much of a stream is sent at once, in bytes.
const restorePart = 128 << 10

// partWriter sends what is written to a server that restores a stream.
type partWriter struct {
	ctx     context.Context
	to      *nats.Conn
	subject string
}

func (w *partWriter) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, restorePart) {
		answer, err := hand(w.ctx, w.to, w.subject, part)
		if err != nil {
			return n, err
		}
		if len(answer.Data) > 0 {
			return n, fmt.Errorf("they refuse it: %.300s", answer.Data)
		}
		n += len(part)
	}
	return n, nil
}

// hand gives a part of a stream to the server that restores it, which may be another one that was asked for it just now.
func hand(ctx context.Context, to *nats.Conn, subject string, part []byte) (*nats.Msg, error) {
	for began := time.Now(); ; {
		answer, err := to.RequestWithContext(ctx, subject, part)
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) > apiTimeout || !pause(ctx, minBackoff) {
			return answer, err
		}
	}
}

// takeCopies makes this core keep the only copy of each stream of an account, of those that the last other core has too. A core that
// was removed before is not waited for: when the leader changes at that moment, NATS counts it as a copy that never catches up.
func (a *attachment) takeCopies(ctx context.Context, nc *nats.Conn, last string) error {
	server, other := a.siteOf()+"."+a.cfg.Node, a.siteOf()+"."+last
	js, err := newJetStream(nc, "")
	if err != nil {
		return err
	}
	for {
		streams, err := lookStreams(ctx, nc, "", false)
		if err != nil { // NATS lists none while one of them has no leader
			if !pause(ctx, minBackoff) {
				return fmt.Errorf("%w: %w", cluster.ErrUnavailable, err)
			}
			continue
		}
		var rest []StreamFacts
		for _, s := range streams {
			switch {
			case s.Leader == server && s.Copies == 1 && len(s.Replicas) == 0:
				continue
			case s.Leader == "":
			case s.Leader != server:
				err = askFor(ctx, nc, "$JS.API.STREAM.LEADER.STEPDOWN."+s.Name, map[string]any{"placement": map[string]string{"preferred": server}}, nil)
			case s.Copies > 1 && slices.ContainsFunc(s.Replicas, func(r ReplicaFacts) bool {
				return r.Server == other && !r.Current && !r.Offline
			}):
			case s.Copies > 1:
				var there jetstream.Stream
				if there, err = js.Stream(ctx, s.Name); err == nil {
					cfg := there.CachedInfo().Config
					cfg.Replicas = 1
					_, err = js.UpdateStream(ctx, cfg)
				}
			}
			if err != nil {
				a.cfg.Log.Debug("the only copy of a stream is not here yet", "stream", s.Name, "error", err)
			}
			rest = append(rest, s)
		}
		if len(rest) == 0 {
			return nil
		}
		if !pause(ctx, minBackoff) {
			s := rest[0]
			return fmt.Errorf("%w: %d streams are not here alone yet; %s has its leader at %q, %d copies, the others %+v: %w",
				cluster.ErrUnavailable, len(rest), s.Name, s.Leader, s.Copies, s.Replicas, ctx.Err())
		}
	}
}

// awaitGone waits for a removed core to end, for a moment: it has to hear that it was removed, and what it still does is
// recorded here.
func (a *attachment) awaitGone(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	for {
		routes, err := a.server.srv().Routez(nil)
		if err != nil || !slices.ContainsFunc(routes.Routes, func(r *server.RouteInfo) bool { return r.RemoteName == a.siteOf()+"."+node }) {
			return
		}
		if !pause(ctx, minBackoff) {
			return
		}
	}
}
