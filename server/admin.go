package server

import (
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/graph"
	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
	"github.com/anteroom/anteroom/bridge/aws"
	"github.com/anteroom/anteroom/dashboard"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/rules"
)

// adminServer serves operators: health, status, metrics, reload. It is bound to the
// loopback interface unless the configuration says otherwise.
func (s *Server) adminServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/live", func(w http.ResponseWriter, r *http.Request) { say(w, http.StatusOK, "live") })
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.Handle("GET /-/status", s.onlyWith(manage.Scrape, http.HandlerFunc(s.status)))
	mux.Handle("POST /-/reload", s.onlyWith(manage.Admin, http.HandlerFunc(s.reload)))
	mux.Handle("GET /metrics", s.onlyWith(manage.Scrape, s.metrics))
	published := rest.New(rest.Config{Manager: s.manage, Log: s.log})
	apis := map[string]http.Handler{rest.Prefix: published, own.Prefix: own.New(own.Config{Manager: s.manage, Log: s.log, Preview: published.MakePreview, Geo: places{s}}),
		graph.Path: graph.New(graph.Config{Manager: s.manage, Minutes: days(s.Config().Analytics.MinuteDays), Retention: days(s.Config().Analytics.RetentionDays), Log: s.log})}
	apis[rehearsalPath] = http.HandlerFunc(s.rehearse)
	if len(s.bridges) > 0 {
		apis[aws.Prefix] = http.HandlerFunc(s.privateBridges)
	}
	mux.HandleFunc(rest.PreviewPath, published.Preview)
	dash := s.newDashboard(whereAPIs(apis, http.NotFoundHandler()))
	below := maps.Clone(apis)
	below["/-"], below["/metrics"], below[strings.TrimSuffix(rest.PreviewPath, "/")] = mux, mux, mux
	srv := &http.Server{
		Handler:           s.onlyOurHost(s.Config().Admin, s.Config().SignIn.URL, whereAPIs(below, dash)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: 20 * time.Second}, // the WriteTimeout is of streams there, as for forwardAuthServer
		MaxHeaderBytes:    anteroom.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	srv.RegisterOnShutdown(dash.Stop)
	if s.Config().AdminTLS.On() {
		srv.TLSConfig = &tls.Config{NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.adminCert.Load(), nil }}
	}
	return srv
}

// onlyWith demands a token with a permission, unless only programs on this machine can reach the admin address.
func (s *Server) onlyWith(may manage.Permission, next http.Handler) http.Handler {
	if a, ok := s.admin.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, err := api.Authenticate(s.manage.Authenticate, r, "")
		if err == nil && !by.May(may, "", "") {
			err = anteroom.Errorf(anteroom.Denied, "this token may not do that; it needs the permission %q", may)
		}
		if err != nil {
			api.SendError(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// places are those that the databases in force know.
type places struct{ s *Server }

// Place implements rules.Geo.
func (p places) Place(a netip.Addr) rules.Place { return p.s.geo.Load().Place(a) }

// whereAPIs gives what is below an API's prefix to that API, as it was sent: a mux would
// answer other spellings of a path with a redirect, which clients of an API cannot read. Of two prefixes
// the longer one goes first.
func whereAPIs(apis map[string]http.Handler, otherwise http.Handler) http.Handler {
	prefixes := slices.SortedFunc(maps.Keys(apis), func(a, b string) int { return len(b) - len(a) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, prefix := range prefixes {
			if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") {
				apis[prefix].ServeHTTP(w, r)
				return
			}
		}
		otherwise.ServeHTTP(w, r)
	})
}

// refuse answers a request that gets no further, in the words of whoever it was for.
func refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if slices.ContainsFunc([]string{rest.Prefix, own.Prefix, dashboard.Prefix}, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix+"/") }) {
		api.SendError(w, api.Refuse(status, api.CodeHeaders, "Invalid request headers: "+text))
		return
	}
	say(w, status, text)
}

// onlyOurHost refuses requests that a page in somebody's browser made: a foreign Origin, or
// a Host that is a name other than localhost, the configured ones and those of the listener's
// certificate (DNS rebinding).
func (s *Server) onlyOurHost(configured, signIn string, next http.Handler) http.Handler {
	name, _, _ := net.SplitHostPort(configured)
	public := ""
	if u, err := url.Parse(signIn); err == nil {
		public = u.Hostname()
	}
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusForbidden, "request from a page of another origin; only programs and the pages of the admin address may use the API")
	}))
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		}
		if _, err := netip.ParseAddr(host); err != nil && !strings.EqualFold(host, "localhost") && (name == "" || !strings.EqualFold(host, name)) && (public == "" || !strings.EqualFold(host, public)) && !s.certified(host) {
			refuse(w, r, http.StatusMisdirectedRequest, "unknown host name; use an IP address, localhost, the name in the keys admin and sign_in.url, or a name of the admin certificate")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// certified reports whether the listener's certificate is for a host.
func (s *Server) certified(host string) bool {
	cert := s.adminCert.Load()
	return cert != nil && cert.Leaf != nil && cert.Leaf.VerifyHostname(host) == nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write([]byte(text + "\n"))
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	s.state.Lock()
	ready, stopping := s.state.ready, s.state.stopping
	s.state.Unlock()
	switch {
	case stopping:
		say(w, http.StatusServiceUnavailable, "stopping")
	case !ready:
		say(w, http.StatusServiceUnavailable, "starting")
	case s.refusing():
		say(w, http.StatusServiceUnavailable, "cannot accept connections")
	default:
		say(w, http.StatusOK, "ready")
	}
}

// healthPath answers load balancers on the visitors' listeners, for every host: 200 if /-/ready would return 200,
// otherwise 503. It reveals nothing else.
const healthPath = "/.well-known/anteroom/health"

// withHealth answers healthPath before the gateway sees the request: it has no room, no site,
// no cookie and no share in any count, and is answered however many requests are in flight.
func (s *Server) withHealth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != healthPath {
			next.ServeHTTP(w, r)
			return
		}
		s.state.Lock()
		ready := s.state.ready && !s.refusing()
		s.state.Unlock()
		w = s.gateway.Bounded(w, r)
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			say(w, http.StatusMethodNotAllowed, "use GET or HEAD")
		case !ready:
			say(w, http.StatusServiceUnavailable, "unavailable")
		default:
			say(w, http.StatusOK, "ok")
		}
	})
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	if err := s.Reload(r.Context(), "POST /-/reload"); err != nil {
		status := http.StatusServiceUnavailable
		switch anteroom.KindOf(err) {
		case anteroom.Invalid, anteroom.NotFound, anteroom.Denied, anteroom.Elsewhere:
			status = http.StatusBadRequest
		}
		say(w, status, "invalid; the last good configuration stays in force:\n"+err.Error())
		return
	}
	say(w, http.StatusOK, "reloaded")
}

// statusPage is the answer of /-/status.
type statusPage struct {
	Version   string          `json:"version"`
	Started   time.Time       `json:"started"`
	Ready     bool            `json:"ready"`
	Config    configStatus    `json:"config"`
	Journal   journalStatus   `json:"journal"`
	Analytics analyticsStatus `json:"analytics"`
	Streams   int             `json:"streams"`
	Rooms     []roomStatus    `json:"rooms"`
	// Proxied are the proxied sites with their origins.
	Proxied []manage.ProxiedSite `json:"proxied_sites"`
}

type configStatus struct {
	Files      []string   `json:"files"`
	ReloadedAt *time.Time `json:"reloaded_at"`
	Error      string     `json:"error,omitempty"`
}

type journalStatus struct {
	Records  uint64 `json:"records"`
	Bytes    uint64 `json:"bytes"`
	Failing  bool   `json:"failing"`
	Failures uint64 `json:"failures"`
}

type roomStatus struct {
	ID                anteroom.RoomID         `json:"id"`
	Name              string                  `json:"name"`
	Zone              string                  `json:"zone"`
	Method            anteroom.QueueingMethod `json:"queueing_method"`
	QueueAll          bool                    `json:"queue_all"`
	Suspended         bool                    `json:"suspended"`
	Paused            bool                    `json:"paused"`
	Draining          bool                    `json:"draining"`
	Phase             string                  `json:"phase"` // of Event
	Event             string                  `json:"event"` // name of the active one, or empty
	Message           string                  `json:"message,omitempty"`
	Mode              string                  `json:"mode"`
	ActiveUsers       int                     `json:"active_users"`
	TotalActiveUsers  int                     `json:"total_active_users"`
	AdmittedLastMin   int                     `json:"admitted_last_minute"`
	NewUsersPerMinute int                     `json:"new_users_per_minute"`
	Pace              int                     `json:"pace_per_minute"`
	PaceReason        anteroom.PaceReason     `json:"pace_reason,omitempty"`
	Waiting           int                     `json:"waiting"`
	Away              int                     `json:"away"`
	Offered           int                     `json:"offered"`
	WaitSeconds       *float64                `json:"wait_of_newcomer_seconds"`
	OldestWaiting     *time.Time              `json:"oldest_waiting"`
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	cfg := s.Config()
	s.state.Lock()
	p := statusPage{Version: s.opts.Version, Started: s.started.UTC(), Ready: s.state.ready, Config: configStatus{Files: cfg.Files}}
	if !s.state.reloadedAt.IsZero() {
		p.Config.ReloadedAt = new(s.state.reloadedAt.UTC())
	}
	if s.state.reloadErr != nil {
		p.Config.Error = s.state.reloadErr.Error()
	}
	s.state.Unlock()
	j := s.node.JournalStats()
	p.Journal = journalStatus{Records: j.Records, Bytes: j.Bytes, Failing: j.Failing, Failures: j.Failures}
	p.Analytics = s.analyticsStatus()
	p.Streams = s.node.Streams()
	p.Proxied = s.origins()
	for _, room := range s.rooms() {
		n := s.node.Room(room.ID)
		if n == nil {
			continue
		}
		st := n.Status()
		in := st.InForce
		if in == nil {
			in = room.At(anteroom.TimeOf(time.Now()))
		}
		one := roomStatus{ID: room.ID, Name: room.Name, Zone: room.Zone, Method: in.QueueingMethod,
			QueueAll: in.QueueAll, Suspended: in.Suspended, Paused: room.Controls.Paused, Draining: in.Draining, Phase: in.Phase.String(), Message: room.Controls.Message, Mode: st.Mode,
			ActiveUsers: st.ActiveUsers, TotalActiveUsers: st.TotalActiveUsers, AdmittedLastMin: st.AdmittedLastMin,
			NewUsersPerMinute: st.NewPerMinute, Pace: st.Pace, PaceReason: st.PaceReason, Waiting: st.Waiting, Away: st.Dormant, Offered: st.Offered}
		if in.Event != nil {
			one.Event = in.Event.Name
		}
		if st.WaitKnown {
			one.WaitSeconds = new(st.WaitOfNewcomer.Seconds())
		}
		if st.OldestWaiting != 0 {
			one.OldestWaiting = new(st.OldestWaiting.Std())
		}
		p.Rooms = append(p.Rooms, one)
	}
	sort.Slice(p.Rooms, func(i, j int) bool { return p.Rooms[i].Name < p.Rooms[j].Name })
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.Encode(p)
}
