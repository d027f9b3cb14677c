package linktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// next returns what comes on the channel.
func next[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	return v
}

// spaces runs the test with both spaces of the link, which a process alone has in one.
func spaces(test func(t *testing.T, x cluster.Space)) func(t *testing.T, l opened) {
	return func(t *testing.T, l opened) {
		t.Run("shared", func(t *testing.T) { test(t, l.Link) })
		if l.Health().Alone {
			return
		}
		t.Run("site", func(t *testing.T) { test(t, l.Site()) })
	}
}

// watching is a Watch under way.
type watching struct {
	changes chan cluster.Change
	stop    context.CancelFunc
	ended   chan error
}

func watch(t *testing.T, x cluster.Space, prefix string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{changes: make(chan cluster.Change, 10_000), stop: cancel, ended: make(chan error, 1)}
	go func() {
		w.ended <- x.Watch(ctx, prefix, func(c cluster.Change) { w.changes <- c })
	}()
	t.Cleanup(cancel)
	return w
}

// synced returns what is told before Synced, by key.
func (w *watching) synced(t *testing.T) map[string]string {
	t.Helper()
	got := map[string]string{}
	for {
		c := next(t, w.changes)
		if c.Synced {
			return got
		}
		if c.Gone {
			delete(got, c.Key)
		} else {
			got[c.Key] = string(c.Value)
		}
	}
}

// until takes changes until the key is told to hold the value, or to be gone.
func (w *watching) until(t *testing.T, key, value string, gone bool) cluster.Change {
	t.Helper()
	for {
		if c := next(t, w.changes); c.Key == key && c.Gone == gone && (gone || string(c.Value) == value) {
			return c
		}
	}
}

func watchTellsAll(t *testing.T, x cluster.Space) {
	for _, k := range []string{"w.a", "w.b", "w.c", "other"} {
		_, err := x.Put(t.Context(), k, []byte("old "+k))
		must(t, err)
	}
	must(t, x.Delete(t.Context(), "w.c"))
	w := watch(t, x, "w.")
	got := w.synced(t)
	if len(got) != 2 || got["w.a"] != "old w.a" || got["w.b"] != "old w.b" {
		t.Errorf("told before Synced: %v", got)
	}
	rev, err := x.Put(t.Context(), "w.a", []byte("new"))
	must(t, err)
	if c := w.until(t, "w.a", "new", false); c.Revision != rev {
		t.Errorf("told revision %d, it is %d", c.Revision, rev)
	}
	_, err = x.Put(t.Context(), "other", []byte("not told"))
	must(t, err)
	must(t, x.Delete(t.Context(), "w.b"))
	w.until(t, "w.b", "", true)
	_, err = x.Update(t.Context(), "w.b", []byte("again"), 0)
	must(t, err)
	w.until(t, "w.b", "again", false)
	w.stop()
	wants(t, next(t, w.ended), context.Canceled, "Watch returns")
	for len(w.changes) > 0 {
		if c := <-w.changes; c.Key == "other" {
			t.Error("a key that does not begin with the prefix was told")
		}
	}
}

func watchEverything(t *testing.T, x cluster.Space) {
	w := watch(t, x, "")
	w.synced(t)
	_, err := x.Put(t.Context(), "any", []byte("v"))
	must(t, err)
	w.until(t, "any", "v", false)
	wants(t, x.Watch(t.Context(), "a.*", func(cluster.Change) {}), cluster.ErrKey, "a bad prefix")
}

func watchTellsTheLast(t *testing.T, x cluster.Space) {
	w := watch(t, x, "k")
	w.synced(t)
	const writes = 300
	for i := range writes {
		_, err := x.Put(t.Context(), fmt.Sprintf("k%d", i%3), fmt.Append(nil, i))
		must(t, err)
	}
	newest := map[string]uint64{}
	for left := 3; left > 0; {
		c := next(t, w.changes)
		if c.Revision < newest[c.Key] {
			t.Fatalf("%s: revision %d after %d", c.Key, c.Revision, newest[c.Key])
		}
		if c.Revision > newest[c.Key] && slices.Contains([]string{"297", "298", "299"}, string(c.Value)) {
			left--
		}
		newest[c.Key] = c.Revision
	}
}

func watchMayUseTheLink(t *testing.T, x cluster.Space) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := x.Watch(ctx, "q.", func(c cluster.Change) {
		var err error
		switch {
		case c.Synced:
			_, err = x.Put(ctx, "q.1", []byte("1"))
		case c.Key == "q.1":
			_, err = x.Put(ctx, "q.2", []byte("2"))
		default:
			cancel()
		}
		if err != nil {
			t.Error(err)
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
}

func leaseExpires(t *testing.T, x cluster.Space) {
	w := watch(t, x, "lease")
	w.synced(t)
	began := time.Now()
	rev, err := x.Lease(t.Context(), "lease", []byte("v"), 0, cluster.MinLease)
	must(t, err)
	if c := w.until(t, "lease", "v", false); c.Revision != rev {
		t.Errorf("told revision %d, it is %d", c.Revision, rev)
	}
	w.until(t, "lease", "", true)
	if took := time.Since(began); took < cluster.MinLease || took > cluster.MinLease+10*time.Second {
		t.Errorf("it went after %v", took)
	}
	wants(t, errOf(x.Get(t.Context(), "lease")), cluster.ErrNotFound, "Get")
	if keys, err := x.Keys(t.Context(), "lease"); err != nil || len(keys) > 0 {
		t.Errorf("Keys: %q, %v", keys, err)
	}
	Refused(t, func() error { return errOf(x.Lease(t.Context(), "lease", nil, rev, cluster.MinLease)) }, "renewed after it went")
	again, err := x.Lease(t.Context(), "lease", []byte("again"), 0, cluster.MinLease)
	must(t, err)
	if again <= rev {
		t.Errorf("revision %d after %d", again, rev)
	}
}

// leaseIsKept takes its time from another lease: five of its lives are more than one of
// the kept.
func leaseIsKept(t *testing.T, x cluster.Space) {
	w := watch(t, x, "l.")
	w.synced(t)
	_, err := x.Lease(t.Context(), "l.stays", nil, 0, cluster.MinLease)
	must(t, err)
	_, err = x.Put(t.Context(), "l.stays", []byte("for ever"))
	must(t, err)
	var rev uint64
	for i := range 5 {
		rev, err = x.Lease(t.Context(), "l.kept", fmt.Append(nil, i), rev, 4*cluster.MinLease)
		must(t, err)
		_, err = x.Lease(t.Context(), "l.clock", nil, 0, cluster.MinLease)
		must(t, err)
		for c := next(t, w.changes); c.Key != "l.clock" || !c.Gone; c = next(t, w.changes) {
			if c.Gone {
				t.Fatalf("%s has gone", c.Key)
			}
		}
	}
	e, err := x.Get(t.Context(), "l.kept")
	if err != nil || e.Revision != rev || string(e.Value) != "4" {
		t.Errorf("%v, %v", e, err)
	}
	if e, err = x.Get(t.Context(), "l.stays"); err != nil || string(e.Value) != "for ever" {
		t.Errorf("%v, %v", e, err)
	}
	for _, ttl := range []time.Duration{0, -cluster.MinLease, cluster.MinLease / 2, cluster.MinLease * 3 / 2} {
		if _, err := x.Lease(t.Context(), "l.bad", nil, 0, ttl); err == nil {
			t.Errorf("a lease of %v is accepted", ttl)
		}
	}
	Refused(t, func() error { return errOf(x.Lease(t.Context(), "l.stays", nil, 0, cluster.MinLease)) }, "with a wrong revision")
}

func subscribe(t *testing.T, x cluster.Space, subject string) (chan cluster.Message, func()) {
	t.Helper()
	ch := make(chan cluster.Message, 10_000)
	stop, err := x.Subscribe(subject, func(m cluster.Message) { ch <- m })
	must(t, err)
	t.Cleanup(stop)
	return ch, stop
}

func messagesReachAll(t *testing.T, x cluster.Space) {
	one, _ := subscribe(t, x, "m.a")
	two, stop := subscribe(t, x, "m.a")
	other, _ := subscribe(t, x, "m.b")
	data := []byte("hello")
	must(t, x.Publish("m.a", data))
	clear(data)
	for _, ch := range []chan cluster.Message{one, two} {
		m := next(t, ch)
		if m.Subject != "m.a" || string(m.Data) != "hello" || m.Reply != nil {
			t.Errorf("got %q on %q, Reply set: %v", m.Data, m.Subject, m.Reply != nil)
		}
		clear(m.Data)
	}
	stop()
	stop()
	for i := range 100 {
		must(t, x.Publish("m.a", fmt.Append(nil, i)))
	}
	for i := range 100 {
		if m := next(t, one); string(m.Data) != fmt.Sprint(i) {
			t.Fatalf("%q where %d was due", m.Data, i)
		}
	}
	if len(two) > 0 || len(other) > 0 {
		t.Errorf("%d after stop, %d of another subject", len(two), len(other))
	}
	must(t, x.Publish("m.nobody", nil))
}

func slowSubscriber(t *testing.T, x cluster.Space) {
	gate, began := make(chan struct{}), make(chan struct{}, 1)
	got := make(chan string, 100_000)
	stop, err := x.Subscribe("slow", func(m cluster.Message) {
		select {
		case began <- struct{}{}:
		default:
		}
		<-gate
		select {
		case got <- string(m.Data):
		default:
		}
	})
	must(t, err)
	defer stop()
	fast, _ := subscribe(t, x, "fast")
	must(t, x.Publish("slow", []byte("first")))
	next(t, began)
	large := make([]byte, 64<<10)
	for range 1_500 { // 96 MB, if all were kept
		must(t, x.Publish("slow", large))
	}
	must(t, x.Publish("fast", []byte("meanwhile")))
	next(t, fast)
	close(gate)
	if first := next(t, got); first != "first" {
		t.Errorf("%.20q comes first", first)
	}
	// What it lost stays lost, and it goes on hearing.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		select {
		case data := <-got:
			if data == "later" {
				return
			}
		case <-tick.C:
			must(t, x.Publish("slow", []byte("later")))
		case <-deadline:
			t.Fatal("the slow subscriber hears nothing any more")
		}
	}
}

func requests(t *testing.T, x cluster.Space) {
	wants(t, errOf(x.Request(t.Context(), "ask", nil)), cluster.ErrNobody, "without a subscriber")
	largest := bytes.Repeat([]byte("x"), cluster.MaxMessage)
	stop, err := x.Subscribe("ask", func(m cluster.Message) {
		if string(m.Data) == "silence" {
			return
		}
		go func() {
			if string(m.Data) == "too much" {
				wants(t, m.Reply(append(largest, 'x')), cluster.ErrTooLarge, "an answer of one byte more")
			}
			if err := m.Reply(m.Data); err != nil {
				t.Error(err)
			}
			m.Reply([]byte("a second answer"))
		}()
	})
	must(t, err)
	for _, data := range []string{"one", "", "too much", string(largest)} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := x.Request(ctx, "ask", []byte(data))
		cancel()
		if err != nil || string(got) != data {
			t.Errorf("asked %.20q: %.20q, %v", data, got, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wants(t, errOf(x.Request(ctx, "ask", []byte("silence"))), context.DeadlineExceeded, "without an answer")
	wants(t, errOf(x.Request(ctx, "ask", []byte("one"))), context.DeadlineExceeded, "with an ended context")
	stop()
	wants(t, errOf(x.Request(t.Context(), "ask", nil)), cluster.ErrNobody, "after stop")
}

func badMessages(t *testing.T, x cluster.Space) {
	over := make([]byte, cluster.MaxMessage+1)
	_, ask := x.Request(t.Context(), "a", over)
	for _, err := range []error{x.Publish("a", over), ask} {
		wants(t, err, cluster.ErrTooLarge, "one byte more than MaxMessage")
	}
	for _, subject := range []string{"", "*", "a.>", "a b", "a..b", "a."} {
		_, subscribe := x.Subscribe(subject, func(cluster.Message) {})
		_, ask := x.Request(t.Context(), subject, nil)
		for _, err := range []error{subscribe, ask, x.Publish(subject, nil)} {
			wants(t, err, cluster.ErrKey, "subject %q", subject)
		}
	}
}

func closedSpace(t *testing.T, l opened) {
	w := watch(t, l.Link, "")
	w.synced(t)
	site := watch(t, l.Site(), "")
	site.synced(t)
	stop, err := l.Subscribe("a", func(cluster.Message) {})
	must(t, err)
	asked := make(chan error, 1)
	heard, _ := subscribe(t, l.Site(), "b")
	go func() {
		_, err := l.Site().Request(context.Background(), "b", nil)
		asked <- err
	}()
	next(t, heard)
	must(t, l.Close())
	for what, ch := range map[string]<-chan error{"Watch": w.ended, "Watch of the site": site.ended, "Request": asked} {
		wants(t, next(t, ch), cluster.ErrClosed, "%s under way at Close", what)
	}
	for _, x := range []cluster.Space{l.Link, l.Site()} {
		_, subscribe := x.Subscribe("a", func(cluster.Message) {})
		_, ask := x.Request(t.Context(), "a", nil)
		_, lease := x.Lease(t.Context(), "a", nil, 0, cluster.MinLease)
		for what, err := range map[string]error{"Subscribe": subscribe, "Request": ask, "Lease": lease, "Publish": x.Publish("a", nil),
			"Watch": x.Watch(t.Context(), "", func(cluster.Change) {})} {
			wants(t, err, cluster.ErrClosed, "%s after Close", what)
		}
	}
	stop()
	l.Health()
}

func health(t *testing.T, l opened) {
	h := l.Health()
	if !h.Site.OK || !h.Shared.OK || h.Site.Lag > time.Minute || h.Shared.Lag > time.Minute {
		t.Errorf("a link that works says %+v", h)
	}
}
