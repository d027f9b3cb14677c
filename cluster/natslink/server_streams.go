package natslink

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
)

const (
	// metaStore names the shared store in its stream's metadata: a store that was begun
	// anew has another name.
	metaStore = "anteroom-store"
	// metaRetention is how long journals are kept, in the metadata of their stream.
	metaRetention = "anteroom-retention"

	// mirrorPrefix begins the name of a site's mirror of the shared keys, before that of their stream.
	mirrorPrefix = "MIRROR_"

	// markerLife is how long a stream keeps the mark of an expired key.
	markerLife = time.Second
)

func sharedStore(att *attachment, domain string) (*store, int64) {
	bucket := att.sharedName + "_shared"
	s := &store{nc: att.shared, api: apiOf(domain), stream: "KV_" + bucket, subjects: "$KV." + bucket + "."}
	if domain != "" {
		s.put = s.api
	}
	s.deaf = func() bool { return att.deaf.Load() && att.isHub() }
	return s, keysSpace(att)
}

func siteStore(att *attachment) (*store, int64) {
	bucket := att.siteName + "_site"
	return &store{nc: att.site, api: apiOf(""), stream: "KV_" + bucket, subjects: "$KV." + bucket + ".", deaf: att.deaf.Load, elections: &elections{}}, keysSpace(att)
}

func bookStore(att *attachment) (*store, int64) {
	return &store{nc: att.site, api: apiOf(""), stream: att.siteName + "_journal", subjects: att.siteName + ".journal.", deaf: att.deaf.Load, elections: &elections{}}, spaceOf(att) / 4 * 3
}

// keysSpace is what the shared keys, and those of the site, may take.
func keysSpace(att *attachment) int64 { return min(spaceOf(att)/16, defaultMaxKeys) }

func spaceOf(att *attachment) int64 { return cmp.Or(att.cfg.MaxStore, defaultMaxStore) }

// ensure returns the stream, and makes it if it is not there and this process may. Of
// several that make it at once one does, the others find it. A cluster that has grown keeps
// it on more servers.
func ensure(ctx context.Context, nc *nats.Conn, domain string, want jetstream.StreamConfig, make bool) (*jetstream.StreamInfo, error) {
	js, err := newJetStream(nc, domain)
	if err != nil {
		return nil, err
	}
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && make {
		if s, err = js.CreateStream(ctx, want); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if refused := new(jetstream.APIError); errors.As(err, &refused) && strings.Contains(refused.Description, "insufficient storage") {
		return nil, fmt.Errorf("natslink: stream %s: it reserves %d MiB on each server, and too few have that left: enlarge their disk or max_file_store: %w", want.Name, want.MaxBytes>>20, err)
	}
	if err != nil {
		return nil, fmt.Errorf("natslink: stream %s: %w", want.Name, err)
	}
	info := s.CachedInfo()
	if make && info.Config.Replicas < want.Replicas {
		grown := info.Config
		grown.Replicas = want.Replicas
		if s, err = js.UpdateStream(ctx, grown); err != nil {
			return nil, fmt.Errorf("natslink: stream %s on %d servers: %w", want.Name, want.Replicas, err)
		}
		info = s.CachedInfo()
	}
	return info, nil
}

// maker says whether this process makes streams and changes how many copies they have: an edge does not know how many
// servers there are.
func maker(ctx context.Context, att *attachment) bool {
	return att.core && att.founds(ctx) || att.cfg.External != nil
}

func replicasOf(att *attachment) int {
	att.mu.Lock()
	defer att.mu.Unlock()
	return att.replicas
}

func keysConfig(s *store, att *attachment, size int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:                   s.stream,
		Subjects:               []string{s.subjects + ">"},
		Storage:                jetstream.FileStorage,
		Replicas:               replicasOf(att),
		Discard:                jetstream.DiscardNew,
		MaxMsgsPerSubject:      1,
		MaxBytes:               size,
		MaxMsgSize:             cluster.MaxValue + perRecord,
		DenyDelete:             true,
		AllowDirect:            true,
		AllowMsgTTL:            true,
		SubjectDeleteMarkerTTL: markerLife,
	}
}

// ensureSite makes the keys and journals of the site.
func ensureSite(ctx context.Context, att *attachment) error {
	keys, size := siteStore(att)
	if _, err := ensure(ctx, att.site, "", keysConfig(keys, att, size), maker(ctx, att)); err != nil {
		return err
	}
	books, size := bookStore(att)
	_, err := ensure(ctx, att.site, "", jetstream.StreamConfig{
		Name:        books.stream,
		Subjects:    []string{books.subjects + ">"},
		Storage:     jetstream.FileStorage,
		Replicas:    replicasOf(att),
		Discard:     jetstream.DiscardNew,
		MaxBytes:    size,
		MaxMsgSize:  cluster.MaxValue + perRecord,
		DenyDelete:  true,
		AllowDirect: true,
		Metadata:    map[string]string{metaRetention: cluster.DefaultRetention.String()},
	}, maker(ctx, att))
	return err
}

// ensureShared makes the shared keys at the hub, and elsewhere their mirror, once the hub
// answers: a mirror that cannot reach its origin tries again only after a long while. It
// returns the stream to follow and what the hub says of the origin.
func ensureShared(ctx context.Context, att *attachment) (near *store, info *jetstream.StreamInfo, err error) {
	hub, size := sharedStore(att, att.hubDomain)
	want := keysConfig(hub, att, size)
	want.Metadata = map[string]string{metaStore: rand.Text()}
	if info, err = ensure(ctx, att.shared, att.hubDomain, want, maker(ctx, att) && att.isHub()); err != nil {
		return nil, nil, err
	}
	if info.Config.Metadata[metaStore] == "" {
		return nil, nil, fmt.Errorf("%w: the stream %s at the hub was not made by Anteroom", errForever, hub.stream)
	}
	own, err := accountInfo(ctx, att.shared, "")
	if err != nil {
		return nil, nil, err
	}
	if att.hubDomain == "" || own.Domain == att.hubDomain {
		return hub, info, nil
	}
	mirror := &store{nc: hub.nc, stream: mirrorPrefix + hub.stream, api: apiOf(""), subjects: hub.subjects, full: hub.full, cores: hub.cores, deaf: hub.deaf, elections: hub.elections}
	_, err = ensure(ctx, att.shared, "", jetstream.StreamConfig{
		Name:         mirror.stream,
		Storage:      jetstream.FileStorage,
		Replicas:     replicasOf(att),
		MaxBytes:     2 * size, // more than the origin ever has: a mirror drops the oldest
		MirrorDirect: true,
		Mirror: &jetstream.StreamSource{
			Name:   hub.stream,
			Domain: att.hubDomain,
		},
	}, maker(ctx, att))
	if err != nil {
		return nil, nil, err
	}
	return mirror, info, nil
}
