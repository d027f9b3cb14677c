//go:build unix

package natslink

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

// edgeSecret is that of an edge of the tests' cluster.
func edgeSecret(t testing.TB, node string) string {
	t.Helper()
	secret, err := EdgeSecret(testSecret, "shop", node)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestAnEdgeWritesNothingOfTheCores: with a secret of its own, an edge reads what it needs, and by no way writes configuration,
// tokens, ticket keys or roles.
func TestAnEdgeWritesNothingOfTheCores(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfg := single(t, "dublin")
	core := join(t, cfg)
	put(t, core, "manage.token.1", "of the core")
	put(t, core, "keys.ring", "of the core")
	put(t, core.Site(), "roles.a", "of the core")
	own := edgeOf(t, cfg)
	own.Secret = edgeSecret(t, "edge")
	edge := join(t, own)

	// What it needs.
	if e, err := edge.Get(t.Context(), "manage.token.1"); err != nil || string(e.Value) != "of the core" {
		t.Errorf("a shared key: %q, %v", e.Value, err)
	}
	put(t, edge, "acme/certificate", "of the edge")
	put(t, edge.Site(), "members.edge", "of the edge")
	if _, err := edge.Lease(t.Context(), "invites.batch.code", []byte("{}"), 0, time.Minute); err != nil {
		t.Errorf("the use of an invite code: %v", err)
	}
	linktest.Refused(t, func() error {
		_, err := edge.Lease(t.Context(), "invites.batch.code", []byte("{}"), 0, time.Minute)
		return err
	}, "another use of it")
	if _, err := edge.Lease(t.Context(), "moves.room.ticket.1", []byte("{}"), 0, time.Minute); err != nil {
		t.Errorf("the move of a place: %v", err)
	}
	heard := make(chan string, 1)
	stop, err := core.Subscribe("coordinator.00", func(m cluster.Message) { heard <- string(m.Data); m.Reply([]byte("answer")) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if answer, err := edge.Request(t.Context(), "coordinator.00", []byte("question")); err != nil || string(answer) != "answer" || <-heard != "question" {
		t.Errorf("a request: %q, %v", answer, err)
	}

	// What it must not, by our own ways…
	for name, space := range map[string]cluster.Space{"manage.token.1": edge, "manage.token.2": edge, "keys.ring": edge, "config.shared": edge, "webhook.leader": edge, "roles.a": edge.Site(), "identity": edge.Site()} {
		began := time.Now()
		_, err := space.Put(t.Context(), name, []byte("of the edge"))
		if !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "core") || time.Since(began) > time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
		if err := space.Delete(t.Context(), name); err == nil {
			t.Errorf("%s was deleted", name)
		}
	}
	// … and by those of NATS.
	sealed := func(subject string) []byte {
		return envelope{number: 1, kind: kindValue, data: []byte("forged")}.seal(subject)
	}
	for _, try := range []struct {
		nc      *nats.Conn
		subject string
	}{
		{edge.att.shared, "$KV.anteroom_shared.manage.token.1"},
		{edge.att.shared, "$KV.anteroom_shared.keys.ring"},
		{edge.att.shared, "$JS.hub.API.$KV.anteroom_shared.manage.token.1"},
		{edge.att.shared, "$JS.API.$KV.anteroom_shared.manage.token.1"},
		{edge.att.site, "$KV.anteroom_site.roles.a"},
		{edge.att.site, "anteroom.journal.site.00"},
		{edge.att.shared, "$JS.API.STREAM.PURGE.KV_anteroom_shared"},
		{edge.att.shared, "$JS.API.STREAM.DELETE.KV_anteroom_shared"},
		{edge.att.site, "$JS.API.STREAM.UPDATE.anteroom_journal"},
		{edge.att.site, "$JS.API.STREAM.PURGE.anteroom_journal"},
		{edge.att.shared, "$JS.API.CONSUMER.LIST.KV_anteroom_shared"},
		{edge.att.shared, "$JS.hub.API.CONSUMER.NAMES.KV_anteroom_shared"},
	} {
		bare := strings.TrimPrefix(strings.TrimPrefix(try.subject, "$JS.hub.API."), "$JS.API.")
		if m, err := try.nc.Request(try.subject, sealed(bare), 300*time.Millisecond); err == nil {
			t.Errorf("%s was answered %s", try.subject, m.Data)
		}
	}
	js, err := jetstream.New(edge.att.shared)
	if err != nil {
		t.Fatal(err)
	}
	bound, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = js.CreateOrUpdateConsumer(bound, "KV_anteroom_shared", jetstream.ConsumerConfig{Durable: "forger", FilterSubject: "$KV.anteroom_shared.acme/certificate"})
	if err != nil {
		t.Fatal(err)
	}
	push, err := edge.att.shared.Request("$JS.API.CONSUMER.CREATE.KV_anteroom_shared",
		[]byte(`{"stream_name":"KV_anteroom_shared","config":{"deliver_subject":"$KV.anteroom_shared.manage.token.1","ack_policy":"none","filter_subject":"$KV.anteroom_shared.acme/certificate"}}`), time.Second)
	if err != nil || !strings.Contains(string(push.Data), "cycle") {
		t.Errorf("a consumer that writes: %+v, %v", push, err)
	}
	// It cannot answer in the name of others.
	asked, err := core.att.shared.SubscribeSync(core.att.shared.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	core.att.shared.Flush()
	edge.att.shared.Publish(asked.Subject, []byte("forged"))
	edge.att.shared.Flush()
	core.att.shared.Flush()
	if n, _, err := asked.Pending(); n != 0 || err != nil {
		t.Errorf("%d forged answers arrived, %v", n, err)
	}
	// Nor by a consumer that delivers into another stream, while somebody listens there.
	edge.att.site.Subscribe("anteroom.journal.site.00", func(*nats.Msg) {})
	edge.att.site.Subscribe("$KV.anteroom_site.roles.a", func(*nats.Msg) {})
	edge.att.site.Flush()
	mine := edge.att.site.NewInbox()
	delivered, err := edge.att.site.SubscribeSync(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, into := range []string{"anteroom.journal.site.00", "$KV.anteroom_site.roles.a", mine} {
		if _, err := edge.att.site.Request("$JS.API.CONSUMER.CREATE.KV_anteroom_site",
			[]byte(`{"stream_name":"KV_anteroom_site","config":{"deliver_subject":"`+into+`","ack_policy":"none","filter_subject":"$KV.anteroom_site.members.edge"}}`), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // what is delivered here has been delivered to the others
		put(t, edge.Site(), "members.edge", "of the edge")
		if _, err := delivered.NextMsg(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := core.att.site.Request("$JS.API.STREAM.INFO.anteroom_journal", nil, time.Second); err != nil || !strings.Contains(string(info.Data), `"messages":0,`) {
		t.Errorf("the journal: %s, %v", info.Data, err)
	}
	// Nor does it hear what others are answered.
	deaf := make(chan struct{}, 1)
	edge.att.shared.Subscribe("_INBOX.>", func(*nats.Msg) {
		select {
		case deaf <- struct{}{}:
		default:
		}
	})
	edge.att.shared.Flush()
	for name, want := range map[string]cluster.Space{"manage.token.1": core, "keys.ring": core, "roles.a": core.Site()} {
		if e, err := want.Get(t.Context(), name); err != nil || string(e.Value) != "of the core" {
			t.Errorf("%s: %q, %v", name, e.Value, err)
		}
	}
	put(t, core, "manage.token.3", "of the core")
	select {
	case <-deaf:
		t.Error("an edge hears the answers to others")
	default:
	}
}

// TestAnEdgesSecretIsOneEdges: it makes no core and no other edge, and can be shut out by its name; those of others go on.
func TestAnEdgesSecretIsOneEdges(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	one, other := edgeSecret(t, "edge-1"), edgeSecret(t, "edge-2")
	cfg := single(t, "dublin")
	cfg.ShutOut = []string{"edge-1"}
	start(t, cfg)
	edge := func(node, secret string) ClusterConfig {
		c := edgeOf(t, cfg)
		c.Node, c.Secret = node, secret
		return c
	}
	within(t, 10*time.Second, start(t, edge("edge-2", other)).ready)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := start(t, edge("edge-1", one)).ready(ctx); err == nil {
		t.Error("an edge that is shut out is in")
	}
	// Edges that scale share a secret, and are shut out together.
	within(t, 10*time.Second, start(t, edge("edge-2-x7f", other)).ready)
	bound, end := context.WithTimeout(t.Context(), 2*time.Second)
	defer end()
	if err := start(t, edge("edge-1-x7f", one)).ready(bound); err == nil {
		t.Error("an edge of a group that is shut out is in")
	}
	// An edge with the secret of the cluster goes on as before.
	within(t, 10*time.Second, start(t, edge("edge-3", testSecret)).ready)

	if _, err := attach(t.Context(), edge("edge-23", other)); err == nil || !strings.Contains(err.Error(), `for the edge "edge-2"`) {
		t.Errorf("another edge's secret: %v", err)
	}
	core := single(t, "paris")
	core.Secret = one
	if _, err := attach(t.Context(), core); err == nil || !strings.Contains(err.Error(), "a core needs the secret of the cluster") {
		t.Errorf("a core with the secret of an edge: %v", err)
	}
	// Authority, own key and certificate belong together.
	for _, damaged := range []string{edgeMark, edgeMark + "x", edgeMark + strings.Repeat("A", 600), one[:len(one)-10], one[:80] + "AAAA" + one[84:], one[:120] + "AAAA" + one[124:], one[:500] + "AAAA" + one[504:]} {
		if err := CheckSecret(damaged, false); err == nil {
			t.Errorf("%.40s… is taken", damaged)
		}
	}
}

func TestAnEdgesSecretLeadsNotBack(t *testing.T) {
	one, other := edgeSecret(t, "edge-1"), edgeSecret(t, "edge-2")
	a, err := parseEdge(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parseEdge(other)
	if err != nil {
		t.Fatal(err)
	}
	if a.shared != b.shared || a.shared == testSecret || a.own.Leaf.Equal(b.own.Leaf) {
		t.Error("edges share their own keys, or not what is shared")
	}
	if key, err := EdgeKey(testSecret, "shop"); err != nil || key != a.shared {
		t.Errorf("the cores' key is %q, %v", key, err)
	}
	id, err := deriveIdentity(testSecret, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if a.ca.Equal(id.ca) || a.own.Leaf.CheckSignatureFrom(id.ca) != nil {
		t.Error("the authority is not the cluster's")
	}
	if name, err := EdgeName(one); name != "edge-1" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for _, bad := range [][3]string{{testSecret, "shop", "a b"}, {testSecret, "", "edge"}, {"weak", "shop", "edge"}, {one, "shop", "edge"}} {
		if _, err := EdgeSecret(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%.10q: made", bad)
		}
	}
}

// TestAnEdgeOfAnotherSite: what holds at the hub holds for an edge whose cores reach the hub by a link.
func TestAnEdgeOfAnotherSite(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	hubConfig := single(t, "dublin")
	hub := join(t, hubConfig)
	put(t, hub, "manage.token.1", "of the core")
	farConfig := single(t, "paris")
	farConfig.Hub = []string{hubConfig.Listen}
	join(t, farConfig)
	own := edgeOf(t, farConfig)
	own.Secret = edgeSecret(t, "edge")
	edge := join(t, own)
	if e, err := edge.Get(t.Context(), "manage.token.1"); err != nil || string(e.Value) != "of the core" {
		t.Errorf("a shared key: %q, %v", e.Value, err)
	}
	put(t, edge, "acme/certificate", "of the edge")
	if _, err := hub.hub.last(t.Context(), "$KV.anteroom_shared.acme/certificate"); err != nil {
		t.Errorf("a key of an edge at the hub: %v", err)
	}
	sealed := envelope{number: 1, kind: kindValue, data: []byte("forged")}.seal("$KV.anteroom_shared.manage.token.1")
	for _, way := range []string{"", "$JS.hub.API.", "$JS.API.", "$JS.site-paris.API."} {
		if m, err := edge.att.shared.Request(way+"$KV.anteroom_shared.manage.token.1", sealed, 300*time.Millisecond); err == nil {
			t.Errorf("by %q: %s", way, m.Data)
		}
	}
	// Nor by consumers, at the hub or at the mirror.
	mine := edge.att.shared.NewInbox()
	delivered, err := edge.att.shared.SubscribeSync(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, into := range []string{"$JS.hub.API.$KV.anteroom_shared.manage.token.1", "$KV.anteroom_shared.manage.token.1", mine} {
		for api, stream := range map[string]string{"$JS.API.": "MIRROR_KV_anteroom_shared", "$JS.hub.API.": "KV_anteroom_shared"} {
			edge.att.shared.Subscribe(into, func(*nats.Msg) {})
			if _, err := edge.att.shared.Request(api+"CONSUMER.CREATE."+stream,
				[]byte(`{"stream_name":"`+stream+`","config":{"deliver_subject":"`+into+`","ack_policy":"none","filter_subject":"$KV.anteroom_shared.acme/certificate"}}`), 3*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 { // each comes twice, and has been delivered to the others then
		put(t, edge, "acme/certificate", "of the edge")
		for range 2 {
			if _, err := delivered.NextMsg(10 * time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e, err := hub.Get(t.Context(), "manage.token.1"); err != nil || string(e.Value) != "of the core" {
		t.Errorf("a shared key became %q, %v", e.Value, err)
	}
	if row, err := hub.hub.last(t.Context(), "$KV.anteroom_shared.manage.token.1"); err != nil || row.seq != 1 {
		t.Errorf("a shared key was written as %d, %v", row.seq, err)
	}
}
