package server

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// effects says for each key of the configuration which test shows that it does something;
// "server" is a test in this file.
var effects = map[string]string{
	"listen":                          "TestWhatNeedsARestartIsSaidAndLeftAlone, TestHandOverLosesNothing",
	"admin":                           "TestAdminAnswersOnlyToItsOwnNames",
	"admin_plain":                     "config: testdata/bad/admin_plain.yaml, testdata/good/cluster.yaml",
	"admin_tls.cert":                  "TestAdminOverTLS",
	"admin_tls.key":                   "TestAdminOverTLS",
	"api.strict":                      "TestStrictAPI",
	"data":                            "cmd/anteroom/testdata/run.txt",
	"log.level":                       "cmd/anteroom TestLogSettings",
	"log.format":                      "cmd/anteroom TestLogSettings",
	"traces.endpoint":                 "TestTracesReachTheReceiver",
	"traces.sample":                   "TestTracesReachTheReceiver, TestWhoIsTraced",
	"trusted_proxies":                 "server",
	"forward_auth.listen":             "TestForwardAuthListener; lab/e2e TestEdges",
	"forward_auth.peers":              "TestForwardAuthListener; gateway TestWhoMayAsk",
	"tls.certificates":                "TestCertificateIsChosenByName",
	"tls.acme.hosts":                  "TestCertificatesFromAnAuthority",
	"tls.acme.email":                  "server",
	"tls.acme.ca":                     "TestCertificatesFromAnAuthority",
	"tls.redirect_http":               "TestRedirectToHTTPS",
	"timeouts.read_header":            "server",
	"timeouts.idle":                   "server",
	"timeouts.idle_waiting":           "server; gateway TestIdleConnectionsOfThoseWhoWaitCloseEarlier",
	"timeouts.write_page":             "server; gateway TestWaitingPageHasItsOwnWriteTime",
	"timeouts.write":                  "server; gateway TestReaderOfAByteASecondIsCutWithinTenSeconds",
	"timeouts.body":                   "server; gateway TestBodiesHaveAnEnd",
	"timeouts.origin_dial":            "server",
	"timeouts.origin_response":        "server",
	"timeouts.drain_delay":            "TestReadyBeforeWhileAndAfter",
	"timeouts.drain":                  "server",
	"analytics.store":                 "TestAnalyticsOfAProcessAlone, TestWithoutAnalytics",
	"analytics.retention_days":        "TestAnalyticsSettingsReachTheStore; store TestWhatIsTooOldGoes",
	"analytics.minute_days":           "TestAnalyticsSettingsReachTheStore; store TestWhatIsTooOldGoes",
	"analytics.max_size_mib":          "TestAnalyticsSettingsReachTheStore; store TestTheFileStaysSmallEnough",
	"limits.connections_per_address":  "server",
	"limits.requests_in_flight":       "server",
	"limits.requests_per_address":     "TestBoundsReachTheGateway; gateway TestRequestsUnderWayAreBounded",
	"limits.requests_per_session":     "TestBoundsReachTheGateway; gateway TestRequestsUnderWayAreBounded",
	"limits.body_rate":                "TestBoundsReachTheGateway; gateway TestBodyOfAByteASecondIsCut",
	"on_failure":                      "server; node TestNobodyNewWhileTheJournalCannotBeWritten",
	"cookie_name":                     "server",
	"fast_path":                       "server; gateway TestOverNetHTTP",
	"challenge.provider":              "TestChallengeSettingsReachTheGateway; gateway TestTurnstile, TestOnlyWhoeverSolvesTheChallengeIsAdmitted",
	"challenge.difficulty":            "TestChallengeSettingsReachTheGateway",
	"challenge.max_difficulty":        "TestChallengeSettingsReachTheGateway; gateway TestTheWorkGrowsWithTheQueue",
	"challenge.script_url":            "TestChallengeSettingsReachTheGateway; gateway TestVisitorsWithAGoodTokenAreAdmitted",
	"challenge.fail_open":             "TestChallengeSettingsReachTheGateway; gateway TestHook",
	"challenge.patience":              "TestChallengeSettingsReachTheGateway; gateway TestWhoeverHasWaitedLongIsNotAskedAnyMore",
	"challenge.site_key":              "TestChallengeSettingsReachTheGateway; gateway TestTurnstile",
	"challenge.secret_file":           "TestChallengeSettingsReachTheGateway; gateway TestTurnstile",
	"challenge.verify_url":            "TestChallengeSettingsReachTheGateway; gateway TestTurnstile",
	"geoip":                           "TestRulesKnowCountries",
	"proof.enabled":                   "server",
	"proof.header":                    "server",
	"proof.issuer":                    "server",
	"sites":                           "server: hosts, origins, preserve_host, health; TestBoundsReachTheGateway: max_connections",
	"webhooks.allow_networks":         "server TestWebhooksReachOnlyWhatIsAllowed",
	"sign_in.issuer":                  "TestSignInAtAProvider",
	"sign_in.client_id":               "TestSignInAtAProvider",
	"sign_in.client_secret_file":      "lab/e2e TestDashboardSignInAtAProvider",
	"sign_in.url":                     "TestSignInAtAProvider",
	"sign_in.label":                   "TestSignInAtAProvider",
	"sign_in.scopes":                  "TestSignInAtAProvider",
	"sign_in.claim":                   "lab/e2e TestDashboardSignInAtAProvider",
	"sign_in.ca_file":                 "TestSignInAtAProvider",
	"cluster.name":                    "natslink: TestAnotherClusterGetsNothing",
	"cluster.site":                    "lab/cluster: every run",
	"cluster.node":                    "server TestClusterStatus",
	"cluster.secret_file":             "natslink: TestAnotherSecretGetsNothing",
	"cluster.listen":                  "lab/cluster: every run",
	"cluster.shut_out":                "natslink: TestAnEdgesSecretIsOneEdges; TestAnEdgesSecretMakesNoTokenAndNoBackup",
	"cluster.cores":                   "lab/cluster: kill",
	"cluster.join":                    "lab/cluster: every run",
	"cluster.hub":                     "lab/cluster: every run",
	"cluster.weight":                  "engine TestWeights",
	"cluster.tls.cert":                "natslink",
	"cluster.tls.key":                 "natslink",
	"cluster.tls.ca":                  "natslink",
	"cluster.nats.url":                "natslink",
	"cluster.nats.credentials":        "natslink",
	"cluster.nats.shared_credentials": "natslink",
	"cluster.nats.shared_domain":      "natslink",
	"cluster.nats.hub":                "natslink",
	"cluster.nats.replicas":           "natslink",
	"rooms":                           "TestReloadOfMethodTemplateAndRooms; gateway and engine: each setting",
}

func TestEveryKeyHasATestOfItsEffect(t *testing.T) {
	keys := map[string]bool{"tls.certificates": true, "sites": true, "rooms": true} // lists of sections are no flags
	for _, f := range config.Flags() {
		if f.Key != "" {
			keys[f.Key] = true
		}
	}
	for k := range keys {
		if effects[k] == "" {
			t.Errorf("%s: no test shows what it does", k)
		}
	}
	for k := range effects {
		if !keys[k] {
			t.Errorf("%s: there is no such key", k)
		}
	}
}

func TestChallengeSettingsReachTheGateway(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]gateway.Challenge{
		"provider: turnstile, difficulty: 12, patience: 7m, site_key: 0xKEY, secret_file: " + secret + ", verify_url: \"https://verify.test/\"": {
			Kind: page.Turnstile, Difficulty: 12, MaxDifficulty: 13, Patience: 7 * time.Minute, SiteKey: "0xKEY", Secret: "s3cret", VerifyURL: "https://verify.test/"},
		"provider: work, max_difficulty: 15": {Kind: page.Work, Difficulty: 10, MaxDifficulty: 15, Patience: 10 * time.Minute},
		"provider: ext, fail_open: true, secret_file: " + secret + ", verify_url: \"https://verify.test/\", script_url: \"https://script.test/\"": {
			Kind: page.Hook, Difficulty: 10, MaxDifficulty: 13, Patience: 10 * time.Minute, Secret: "s3cret", VerifyURL: "https://verify.test/", ScriptURL: "https://script.test/", FailOpen: true},
	} {
		r := startServer(t, "challenge: {"+file+"}\n")
		got, err := r.s.gatewayConfig(prepared{cfg: r.s.Config(), ring: ticket.NewKeyring(time.Now())})
		if err != nil || got.Challenge != want {
			t.Errorf("%s: %+v, %v", file, got.Challenge, err)
		}
	}
}

func TestBoundsReachTheGateway(t *testing.T) {
	for file, want := range map[string]gateway.Config{
		"": {MaxPerAddress: 1000, MaxPerSession: 200, BodyRate: 500, Sites: []gateway.Site{{}}},
		"limits: {requests_per_address: 0, requests_per_session: 3, body_rate: 0}\n": {MaxPerSession: 3, BodyRate: -1, Sites: []gateway.Site{{MaxConnections: 7}}},
	} {
		r := startServer(t, file+fmt.Sprintf("sites: [{hosts: a.test, origins: \"http://127.0.0.1:9\", max_connections: %d}]\n", want.Sites[0].MaxConnections))
		got, err := r.s.gatewayConfig(prepared{cfg: r.s.Config(), ring: ticket.NewKeyring(time.Now())})
		if err != nil || got.MaxPerAddress != want.MaxPerAddress || got.MaxPerSession != want.MaxPerSession || got.BodyRate != want.BodyRate ||
			got.Sites[0].MaxConnections != want.Sites[0].MaxConnections {
			t.Errorf("%q: %+v, %v", file, got, err)
		}
	}
}

func TestTimeoutsReachTheServers(t *testing.T) {
	r := startServer(t, "timeouts: {read_header: 1s, idle: 2s, idle_waiting: 3s, write_page: 4s, write: 7s, body: 0s, origin_dial: 5s, origin_response: 6s}\n")
	cfg := r.s.Config()
	if srv := r.s.visitorServer(cfg); srv.ReadHeaderTimeout != time.Second || srv.IdleTimeout != 2*time.Second {
		t.Errorf("visitors' server: %v %v", srv.ReadHeaderTimeout, srv.IdleTimeout)
	}
	p, err := r.s.prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	g, err := r.s.gatewayConfig(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Timeouts; got.IdleWaiting != 3*time.Second || got.Page != 4*time.Second || got.Write != 7*time.Second || got.Body != endless(0) || got.Dial != 5*time.Second || got.ResponseHeader != 6*time.Second {
		t.Errorf("gateway: %+v", got)
	}
}

func TestOriginResponseOfZeroWaitsForEver(t *testing.T) {
	if endless(0) < 100*365*24*time.Hour || endless(time.Second) != time.Second {
		t.Error(endless(0))
	}
}

func TestOriginThatDoesNotAnswerInTime(t *testing.T) {
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer slow.Close()
	defer close(hang)
	r := startServer(t, "timeouts: {origin_response: 50ms}\nsites: [{hosts: \"*\", origins: \""+slow.URL+"\"}]\n")
	if a := r.visit("/"); a.StatusCode != 504 {
		t.Errorf("got %d", a.StatusCode)
	}
}

// TestFastPath: answers that can be read in two ways are where one can tell.
func TestFastPath(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok")
			c.Close()
		}
	}()
	for setting, want := range map[string]int{"": 502, "fast_path: true\n": 502, "fast_path: false\n": 200} {
		r := startServer(t, setting+"sites: [{hosts: \"*\", origins: \"http://"+l.Addr().String()+"\"}]\n")
		if a := r.visit("/"); a.StatusCode != want {
			t.Errorf("%q: got %d, want %d", setting, a.StatusCode, want)
		}
	}
}

func TestDrainBoundsTheEnd(t *testing.T) {
	hang, arrived := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-hang }))
	defer slow.Close()
	defer close(hang)
	r := startServer(t, "timeouts: {drain: 0s}\nsites: [{hosts: \"*\", origins: \""+slow.URL+"\"}]\n")
	go http.Get("http://" + r.s.Addresses().Visitors[0])
	<-arrived
	began := time.Now()
	if err := r.end(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestConnectionsPerAddress(t *testing.T) {
	for _, c := range []struct {
		refused bool
		yaml    string
	}{{refused: true, yaml: "limits: {connections_per_address: 2}\n"}, {refused: false, yaml: "limits: {connections_per_address: 0}\n"}} {
		r := startServer(t, c.yaml)
		refused := false
		for range 4 {
			conn, err := net.Dial("tcp", r.s.Addresses().Visitors[0])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				refused = true
			}
		}
		if refused != c.refused {
			t.Errorf("%s: refused %v", c.yaml, refused)
		}
	}
}

func TestRequestsInFlight(t *testing.T) {
	hang, arrived := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { close(arrived); <-hang }))
	defer slow.Close()
	defer close(hang)
	r := startServer(t, "limits: {requests_in_flight: 1}\ntimeouts: {drain: 0s}\nsites: [{hosts: \"*\", origins: \""+slow.URL+"\"}]\n")
	go http.Get("http://" + r.s.Addresses().Visitors[0])
	<-arrived
	if a := r.visit("/"); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("the second request: %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
	}
}

func TestOnFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for choice, want := range map[string]bool{"queue_new": false, "admit_new": true} {
		r := startServer(t, "on_failure: "+choice+"\nrooms:\n  - {name: shop, host: \"*\", total_active_users: 100, new_users_per_minute: 1000}\n")
		inside := r.visit("/")
		r.s.link.Close() // nothing can be written any more
		r.broken = true
		r.visit("/") // meets the failure
		if a := r.visit("/"); a.isIn() != want {
			t.Errorf("%s: a newcomer is in: %v", choice, a.isIn())
		}
		if a := r.visit("/", inside.Cookies()...); !a.isIn() {
			t.Errorf("%s: the session did not go on", choice)
		}
		if a := r.admin("GET", "/metrics"); !strings.Contains(a.body, "anteroom_journal_failing 1") {
			t.Errorf("%s: the metrics do not tell", choice)
		}
		st, err := r.s.Manager().Cluster(t.Context(), operator)
		if err != nil || !slices.ContainsFunc(st.Findings, func(f manage.ClusterFinding) bool {
			return f.Severity == "error" && strings.Contains(f.What, "the journal cannot be written")
		}) {
			t.Errorf("%s: the doctor finds %+v, %v", choice, st.Findings, err)
		}
	}
}

// asked returns what the origin gets of a request.
func asked(t *testing.T, yaml, host string, header ...string) (*http.Request, answer) {
	t.Helper()
	seen := make(chan *http.Request, 100)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r }))
	defer origin.Close()
	r := prepareServer(t, "")
	r.write(listenAnywhere + strings.ReplaceAll(yaml, "SITE", origin.URL))
	r.start()
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+"/", nil)
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	a := r.do(req, err)
	select {
	case got := <-seen:
		return got, a
	default:
		return nil, a
	}
}

func TestEffectsAtTheOrigin(t *testing.T) {
	const one = "sites: [{hosts: \"*\", origins: \"SITE\"}]\n"
	r, _ := asked(t, one, "shop.example.com", "X-Forwarded-For", "203.0.113.9")
	if got := r.Header.Get("X-Forwarded-For"); got != "127.0.0.1" {
		t.Errorf("without trusted_proxies: X-Forwarded-For %q", got)
	}
	r, _ = asked(t, one+"trusted_proxies: 127.0.0.0/8\n", "shop.example.com", "X-Forwarded-For", "203.0.113.9")
	if got := r.Header.Get("X-Forwarded-For"); !strings.HasPrefix(got, "203.0.113.9") {
		t.Errorf("trusted_proxies: X-Forwarded-For %q", got)
	}
	if r.Host != "shop.example.com" {
		t.Errorf("preserve_host by default: %q", r.Host)
	}
	r, _ = asked(t, "sites: [{hosts: shop.example.com, origins: \"SITE\", preserve_host: false}]\n", "shop.example.com")
	if r == nil || r.Host == "shop.example.com" {
		t.Error("preserve_host: false")
	}
	if r, a := asked(t, "sites: [{hosts: shop.example.com, origins: \"SITE\"}]\n", "other.example.com"); r != nil || a.StatusCode != 421 {
		t.Errorf("hosts: %d", a.StatusCode)
	}
	room := "rooms: [{name: shop, host: \"*\", total_active_users: 9, new_users_per_minute: 9}]\n"
	r, a := asked(t, one+room+"cookie_name: place\nproof: {header: X-Pass, issuer: door}\n", "shop.example.com")
	if len(a.Cookies()) != 1 || a.Cookies()[0].Name != "place" {
		t.Errorf("cookie_name: %v", a.Cookies())
	}
	if jwt := strings.Split(r.Header.Get("X-Pass"), "."); len(jwt) != 3 {
		t.Errorf("proof.header: %q", r.Header)
	} else if claims := decodeClaims(t, jwt[1]); claims["iss"] != "door" {
		t.Errorf("proof.issuer: %v", claims)
	}
	r, _ = asked(t, one+room+"proof: {enabled: false, header: X-Pass}\n", "shop.example.com", "X-Pass", "forged")
	if got := r.Header.Get("X-Pass"); got != "" {
		t.Errorf("proof.enabled: false passes %q", got)
	}
}

func decodeClaims(t *testing.T, part string) map[string]any {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(part)
	claims := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestHealthCheckLeavesOutAnOrigin: path, interval and timeout of the check.
func TestHealthCheckLeavesOutAnOrigin(t *testing.T) {
	asked, hang := make(chan struct{}, 100), make(chan struct{})
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			asked <- struct{}{}
			<-hang
		}
		io.WriteString(w, "ill")
	}))
	defer ill.Close()
	defer close(hang)
	r := prepareServer(t, "")
	r.write(listenAnywhere + "sites: [{hosts: \"*\", origins: [\"" + ill.URL + "\", ORIGIN], health: {path: /healthz, interval: 100ms, timeout: 100ms}}]\n")
	r.start()
	for range 3 { // the second question comes after the first has failed
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatal("the health check does not ask")
		}
	}
	for range 10 {
		if a := r.visit("/"); !a.isIn() {
			t.Fatalf("the ill origin answered: %q", a.body)
		}
	}
}

func TestMailAddressReachesTheAuthority(t *testing.T) {
	r := startServer(t, "tls: {acme: {email: ops@example.com}}\n")
	if got := r.s.certs.magic.Email; got != "ops@example.com" {
		t.Errorf("got %q", got)
	}
}
