package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/rules/geo"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/proof"
)

// CheckSecret is what the secret of a cluster must satisfy; it belongs into config.LoadOptions.
func CheckSecret(secret string, core bool) error { return natslink.CheckSecret(secret, core) }

// EdgeSecret makes the secret of an edge from that of the cluster: see [natslink.EdgeSecret].
func EdgeSecret(secret, cluster, node string) (string, error) {
	return natslink.EdgeSecret(secret, cluster, node)
}

// Check is what rooms must satisfy together; it belongs into config.LoadOptions.
func Check(cookieName string, rooms []anteroom.Room) anteroom.Faults {
	faults := route.Check(rooms, cookieName)
	for i, r := range rooms {
		at := fmt.Sprintf("rooms[%d].", i)
		_, wrong := page.CompileAt(at, r.CustomPageHTML)
		faults = append(faults, wrong...)
		for j, e := range r.Events {
			if e.CustomPageHTML != nil {
				_, wrong := page.CompileAt(fmt.Sprintf("%sevents[%d].", at, j), *e.CustomPageHTML)
				faults = append(faults, wrong...)
			}
		}
		check := func(path, expression string) {
			_, err := rules.Compile(expression, nil)
			more, _ := errors.AsType[anteroom.Faults](err)
			for _, f := range more {
				if f.Column > 0 && strings.HasPrefix(expression[f.Column-1:], "$") {
					continue // lists are in the store, and asked for when there is one
				}
				f.Problem = fmt.Sprintf("column %d: %s", f.Column, f.Problem)
				f.Path, f.Column = at+path+".expression", 0
				faults = append(faults, f)
			}
		}
		for j, rule := range r.Rules {
			check(fmt.Sprintf("rules[%d]", j), rule.Expression)
		}
		for j, lane := range r.Lanes {
			if lane.Expression != "" {
				check(fmt.Sprintf("lanes[%d]", j), lane.Expression)
			}
		}
	}
	return faults
}

// prepared is a configuration with everything read that it needs from files.
type prepared struct {
	cfg   config.Config
	ring  *ticket.Keyring
	certs loadedCertificates
	admin *tls.Certificate // of the operators' listener; nil for plain HTTP
	geo   *geo.Databases

	tracer *tracer // nil: nothing is traced
}

// prepare reads the files of a configuration. It changes nothing but makes the data
// directory and the keys at the first start.
func (s *Server) prepare(ctx context.Context, cfg config.Config) (p prepared, err error) {
	p.cfg = cfg
	if s.ring != nil {
		p.ring, err = s.clusterKeys(ctx, cfg.Data)
	} else {
		p.ring, err = s.keys(cfg.Data)
	}
	if err != nil {
		return p, err
	}
	if p.certs, err = loadCertificates(cfg.TLS, s.log); err != nil {
		return p, err
	}
	if p.geo, err = geo.Open(cfg.GeoIP, s.geo.Load()); err != nil {
		return p, err
	}
	p.tracer = s.tracerOf(cfg.Traces)
	if a := cfg.AdminTLS; a.On() {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return p, anteroom.Errorf(anteroom.Invalid, "admin_tls: %w", err)
		}
		p.admin = &pair
	}
	_, err = s.gatewayConfig(p) // the proof: again when there is a node
	return p, err
}

// keys reads the key file, and at the start makes one when there is none. Later a missing
// file is a mistake: new keys would make every visitor new. The data directory is that of
// the start, whatever a reloaded configuration says.
func (s *Server) keys(data string) (*ticket.Keyring, error) {
	if first := s.first.Load(); first != nil {
		return ticket.Load(KeyFile(first.Data))
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "the data directory cannot be made: %w (set data: to a directory that this user may write)", err)
	}
	ring, created, err := ticket.LoadOrCreate(KeyFile(data), time.Now())
	if created {
		s.log.Info("created a key file: it seals the visitors' tickets; keep it safe and do not share it", "file", KeyFile(data))
	}
	return ring, err
}

// use puts a configuration in force, or changes nothing and says why: everything that can
// fail comes before the first change.
func (s *Server) use(ctx context.Context, p prepared) error {
	var err error
	if s.manage == nil {
		err = s.openManager(ctx, p)
	} else {
		err = s.manage.SetFile(ctx, manage.File{Name: p.cfg.File, Rooms: p.cfg.Rooms, CookieName: p.cfg.CookieName, Strict: p.cfg.API.Strict, Hosts: proxiedHosts(p.cfg)}, s.prepareDoors(p))
	}
	if err != nil {
		return err
	}
	for _, w := range p.cfg.Warnings {
		s.log.Warn("the configuration may contain a mistake", "at", w)
	}
	s.webhooks.use(p)
	s.pushes.use(p)
	s.node.AdmitUnrecorded(p.cfg.OnFailure == "admit_new")
	s.certs.use(s.life, p.certs)
	s.keyring.Store(p.ring)
	s.trace(p.tracer)
	if p.admin != nil {
		s.adminCert.Store(p.admin)
	}
	s.cfg.Store(&p.cfg)
	s.geo.Store(p.geo)
	s.first.CompareAndSwap(nil, &p.cfg)
	if s.ring != nil {
		s.useShared(p.cfg)
	}
	return nil
}

// endless is a duration for which zero means for ever where the receiver's zero is a default.
func endless(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}

// gatewayConfig makes the gateway's configuration from ours, without the rooms.
func (s *Server) gatewayConfig(p prepared) (gateway.Config, error) {
	cfg := p.cfg
	g := gateway.Config{
		Node: s.node, Keys: p.ring,
		ProofHeader: cfg.Proof.Header, Issuer: cfg.Proof.Issuer, CookieName: cfg.CookieName, TrustedProxies: cfg.TrustedProxies, ForwardAuthPeers: cfg.ForwardAuth.Peers,
		MaxInFlight: cfg.Limits.RequestsInFlight, MaxPerAddress: cfg.Limits.RequestsPerAddress, MaxPerSession: cfg.Limits.RequestsPerSession,
		BodyRate: cmp.Or(cfg.Limits.BodyRate, -1),
		Geo:      p.geo, Crawlers: s.crawlers,
		Timeouts: gateway.Timeouts{Dial: cfg.Timeouts.OriginDial, ResponseHeader: endless(cfg.Timeouts.OriginResponse),
			Page: cfg.Timeouts.WritePage, Write: cfg.Timeouts.Write, Body: endless(cfg.Timeouts.Body), IdleWaiting: cfg.Timeouts.IdleWaiting},
		NoFastPath: !cfg.FastPath,
		Log:        s.log,
	}
	var err error
	if g.Challenge, err = challengeOf(cfg.Challenge); err != nil {
		return g, err
	}
	if p.tracer != nil {
		g.Tracer = p.tracer
	}
	for _, site := range cfg.Sites {
		one := gateway.Site{Hosts: site.Hosts, OpenHosts: site.OpenHosts, PreserveHost: site.PreserveHost, MaxConnections: site.MaxConnections,
			Health: gateway.Health{Path: site.Health.Path, Interval: site.Health.Interval, Timeout: site.Health.Timeout}}
		for _, o := range site.Origins {
			u, err := url.Parse(o)
			if err != nil {
				return g, anteroom.Errorf(anteroom.Invalid, "sites: origin %q: %w", o, err)
			}
			one.Origins = append(one.Origins, u)
		}
		g.Sites = append(g.Sites, one)
	}
	if cfg.Proof.Enabled {
		pc := proof.Config{Issuer: cfg.Proof.Issuer, SubjectKey: proof.Seed(p.ring.Fixed(ticket.PurposeSubject))}
		for _, d := range p.ring.Derive(ticket.PurposeProof) {
			pc.Keys = append(pc.Keys, proof.Key{ID: d.ID, Seed: proof.Seed(d.Secret)})
		}
		signer, err := proof.New(pc)
		if err != nil {
			return g, err
		}
		g.Proof = signer
	}
	return g, nil
}

// challengeOf is what the file says about challenges.
func challengeOf(c config.Challenge) (out gateway.Challenge, err error) {
	out = gateway.Challenge{Difficulty: c.Difficulty, MaxDifficulty: c.MaxDifficulty, Patience: c.Patience, SiteKey: c.SiteKey, VerifyURL: c.VerifyURL, ScriptURL: c.ScriptURL}
	switch c.Provider {
	case config.ChallengeWork:
		out.Kind = page.Work
	case config.ChallengeTurnstile:
		out.Kind = page.Turnstile
	case config.ChallengeExt:
		out.Kind, out.FailOpen = page.Hook, c.FailOpen
	}
	if out.Kind > page.Work && c.SecretFile != "" {
		out.Secret, err = c.Secret()
	}
	return out, err
}
