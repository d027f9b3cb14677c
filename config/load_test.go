package config

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os/user"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// only opens the files given as pairs of name and content.
func only(pairs ...any) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return io.NopCloser(bytes.NewReader(pairs[i+1].([]byte))), nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

func TestFlagsOverEnvironmentOverFile(t *testing.T) {
	file := []byte(`
listen: [":1"]
log: {level: debug}
timeouts: {drain: 1s, idle: 2s}
trusted_proxies: 10.0.0.0/8
sites: [{hosts: "*", origins: "http://f"}]
`)
	c, err := Load(LoadOptions{
		File: "/etc/anteroom/c.yaml",
		Open: only("/etc/anteroom/c.yaml", file, "issuer.txt", []byte("me\n")),
		Env: []string{"ANTEROOM_LISTEN=:2, :3", "ANTEROOM_LOG_LEVEL=warn", "ANTEROOM_TIMEOUTS_DRAIN=3s", "ANTEROOM_PROOF_ISSUER_FILE=issuer.txt",
			"ANTEROOM_PROOF_ENABLED=false", "ANTEROOM_ADMIN=", "ANTEROOM_PORT=tcp://10.0.0.1:80", "ANTEROOM_API_TOKEN=t", "PATH=/bin"},
		Flags: map[string]string{"listen": ":4", "timeouts-drain": "4s", "data": "here", "trusted-proxies": ""},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(c.Listen, c.Log.Level, c.Timeouts.Drain, c.Timeouts.Idle, c.Timeouts.ReadHeader, c.Proof, c.Admin, c.Data, c.TrustedProxies, c.Sites[0].PreserveHost)
	if want := "[:4] warn 4s 2s 5s {false X-Anteroom-Assertion me} 127.0.0.1:8081 here [] true\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := []string{"/etc/anteroom/c.yaml", "issuer.txt"}; c.File != want[0] || !slices.Equal(c.Files, want) {
		t.Errorf("files %q, want %q", c.Files, want)
	}
	for _, line := range []string{`listen: [":4"] # from --listen`, "level: \"warn\" # from ANTEROOM_LOG_LEVEL", "idle: 2s\n", "read_header: 5s # default", "issuer: \"me\" # from ANTEROOM_PROOF_ISSUER_FILE"} {
		if !strings.Contains(c.Effective(), line) {
			t.Errorf("effective lacks %q:\n%s", line, c.Effective())
		}
	}
}

func TestPathsAreRelativeToTheirFile(t *testing.T) {
	file := []byte("data: state\nsites: [{hosts: '*', origins: 'http://f'}]\nrooms: [{name: a, host: '*', total_active_users: 1, new_users_per_minute: 1, custom_page_file: p.html}]\n")
	c, err := Load(LoadOptions{File: "/etc/anteroom/c.yaml", Open: only("/etc/anteroom/c.yaml", file, "/etc/anteroom/p.html", []byte("page"))})
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "/etc/anteroom/state" || c.Rooms[0].CustomPageHTML != "page" {
		t.Errorf("data %q, page %q", c.Data, c.Rooms[0].CustomPageHTML)
	}
}

func TestARoomFromFlags(t *testing.T) {
	site := []byte("sites: [{hosts: shop.example, origins: 'http://f'}, {hosts: '*', origins: 'http://g'}]")
	rooms := append(site, []byte("\nrooms: [{name: a, host: shop.example, total_active_users: 1, new_users_per_minute: 1}]")...)
	for _, c := range []struct {
		name  string
		file  []byte
		flags map[string]string
		want  string // site and room, or the faults
	}{
		{"origin alone", nil, map[string]string{"origin": "http://o"}, "[*]→[http://o] default@*/ 500 500 5m0s fifo false"},
		{"two origins", nil, map[string]string{"origin": "http://o,http://p"}, "[*]→[http://o http://p] default@*/ 500 500 5m0s fifo false"},
		{"all", nil, map[string]string{"origin": "http://o", "total-active-users": "7", "new-users-per-minute": "6", "session-duration": "9", "queueing-method": "random", "queue-all": "true"},
			"[*]→[http://o] default@*/ 7 6 9m0s random true"},
		{"room over a file's sites", site, map[string]string{"total-active-users": "7"}, "[shop.example]→[http://f] default@*/ 7 7 5m0s fifo false"},
		{"a file without rooms has none", site, nil, "[shop.example]→[http://f] -"},
		{"site under a file's rooms", rooms[len(site):], map[string]string{"origin": "http://o"}, "[*]→[http://o] a@shop.example/ 1 1 5m0s fifo false"},
		{"not with the file's", rooms, map[string]string{"origin": "http://o", "queue-all": "true"}, "--origin: cannot be used with sites in the file (change the site's origins in the file)\n--queue-all: cannot be used with rooms in the file (change the room in the file)"},
		{"nothing", nil, nil, "sites: no origin configured (use --origin http://127.0.0.1:3000, or sites in the file)"},
		{"no URL", nil, map[string]string{"origin": "127.0.0.1:3000"}, `--origin: "127.0.0.1:3000" is not an http or https URL (scheme, host and port only: http://127.0.0.1:3000)`},
		{"out of range", nil, map[string]string{"origin": "http://o", "session-duration": "0s", "total-active-users": "-1"},
			"--total-active-users: -1 is too small (0 to 2147483647)\n--session-duration: 0s is out of range (1s to 24h)"},
	} {
		o := LoadOptions{Flags: c.flags}
		if c.file != nil {
			o.File, o.Open = "f", only("f", c.file)
		}
		got := ""
		if cfg, err := Load(o); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%v→%v -", cfg.Sites[0].Hosts, cfg.Sites[0].Origins)
			if len(cfg.Rooms) > 0 {
				r := cfg.Rooms[0]
				got = fmt.Sprint(got[:len(got)-1], r.Name, "@", r.Routes[0].Host, r.Routes[0].Path, " ", r.TotalActiveUsers, " ", r.NewUsersPerMinute, " ", r.SessionDuration, " ", r.QueueingMethod, " ", r.QueueAll)
			}
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestFilesOfOtherUsers: a service runs as another user than the operator who writes its files, so the error names it.
func TestFilesOfOtherUsers(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(LoadOptions{File: "anteroom.yaml", Open: func(name string) (io.ReadCloser, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}})
	want := `file: "anteroom.yaml" cannot be read: permission denied (this process runs as user ` + me.Username + `, who has to be able to read it: check the permissions of the file and its directories)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestFaultsOutsideTheFile(t *testing.T) {
	_, err := Load(LoadOptions{
		File: "gone.yaml", Open: only(),
		Env:   []string{"ANTEROOM_LISTEN=nowhere", "ANTEROOM_LISTN=:80", "ANTEROOM_DATA=a", "ANTEROOM_DATA_FILE=b", "ANTEROOM_ADMIN_FILE=gone", "ANTEROOM_LIMITS_REQUESTS_IN_FLIGHT=x"},
		Flags: map[string]string{"adminn": "x", "log-format": "xml", "origin": "http://o"},
	})
	if err == nil {
		t.Fatal("no faults")
	}
	want := `file: "gone.yaml" cannot be read: file does not exist (check the path and its permissions; a relative path starts at the file it stands in)
ANTEROOM_ADMIN_FILE: "gone" cannot be read: file does not exist (check the path and its permissions; a relative path starts at the file it stands in)
ANTEROOM_DATA_FILE: is set together with ANTEROOM_DATA (unset one of them)
ANTEROOM_LIMITS_REQUESTS_IN_FLIGHT: "x" is not a whole number (1 to 1000000)
ANTEROOM_LISTN: is not read by anything (did you mean ANTEROOM_LISTEN?)
--log-format: "xml" is not known (one of json, text)
--adminn: is not a flag (did you mean --admin?)`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	// What the environment replaced has no position in the file any more.
	_, err = Load(LoadOptions{File: "f", Open: only("f", []byte("listen: [':1', ':2']")),
		Env: []string{"ANTEROOM_LISTEN=:80,nowhere"}, Flags: map[string]string{"origin": "http://o", "admin": ":80"}})
	want = `--admin: ":80" is also an address for visitors (give operators an address of their own)
ANTEROOM_LISTEN: "nowhere" is not an address to listen on (host:port, like :8080, 127.0.0.1:8081 or [::1]:8081)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// A long path is shown with the file's own name.
func TestLongPathsOfFilesThatAreMissing(t *testing.T) {
	for _, path := range []string{"/" + strings.Repeat("folder/", 12) + "gone.yaml", "/" + strings.Repeat("folder/", 500) + "gone.yaml"} {
		_, err := Load(LoadOptions{File: path, Open: only()})
		if err == nil || !strings.Contains(err.Error(), `/gone.yaml" cannot be read: file does not exist`) || len(err.Error()) > 500 {
			t.Errorf("%v", err)
		}
	}
}

func TestEveryFlagHasOneMeaning(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range Flags() {
		if seen[f.Name] || seen[f.Env] || seen[f.Env+"_FILE"] {
			t.Errorf("%s or %s is there twice", f.Name, f.Env)
		}
		seen[f.Name], seen[f.Env], seen[f.Env+"_FILE"] = true, true, true
		if f.Usage == "" {
			t.Errorf("--%s says nothing", f.Name)
		}
	}
	for _, name := range []string{"listen", "origin", "tls-acme-email", "total-active-users", "proof-enabled"} {
		if !seen[name] {
			t.Errorf("--%s is missing", name)
		}
	}
}

// Every default must be a value that the key accepts, and every key must say something.
func TestTheTagsAreSound(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for _, f := range field.Of(typ) {
			if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%v %s: doc %q", typ, f.Key, f.Doc)
			}
			if f.IsSection() {
				walk(f.Type)
			} else if f.IsSections() {
				walk(f.Type.Elem())
			} else if w := f.Set(reflect.New(f.Type).Elem(), f.Default); f.HasDefault && w != nil {
				t.Errorf("%v %s: default %q: %s", typ, f.Key, f.Default, w.Problem)
			}
		}
	}
	walk(reflect.TypeFor[document]())
	walk(reflect.TypeFor[quick]())
}

func TestHugeInputsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	deep := strings.Repeat("[", 20_000)
	manyRooms := "rooms: [" + strings.Repeat("{name: a},", anteroom.MaxRooms+1) + "]"
	// 10,000 rooms that each refer to 10,000 routes are 100,000,000 routes.
	product := "x: &r [" + strings.Repeat("{host: a},", 9_999) + "]\nrooms: [&a {name: a, routes: *r}" + strings.Repeat(",*a", 9_999) + "]"
	for name, text := range map[string]string{
		"too large":  "#" + strings.Repeat("x", 4<<20),
		"deep":       "listen: " + deep,
		"deep block": strings.Repeat("- ", 20_000),
		"many rooms": manyRooms,
		"product":    product,
		"many keys":  strings.Repeat("x: 1\n", 100_000),
		"cycle":      "rooms: &r [*r]\nsites: &s {<<: *s}\nlog: &l {<<: [*l, *l, *l, *l, *l, *l, *l, *l]}",
	} {
		_, err := Load(LoadOptions{File: "f", Open: only("f", []byte(text))})
		faults, ok := errors.AsType[anteroom.Faults](err)
		if !ok || len(faults) > 1000 {
			t.Errorf("%s: %d faults, %.200v", name, len(faults), err)
		}
	}
}

func TestTenThousandRooms(t *testing.T) {
	var b strings.Builder
	b.WriteString("sites: [{hosts: '*', origins: 'http://f'}]\nrooms:\n")
	for i := range anteroom.MaxRooms {
		fmt.Fprintf(&b, "  - {name: r%d, host: h%d.example, total_active_users: 1, new_users_per_minute: 1}\n", i, i)
	}
	c, err := Load(LoadOptions{File: "f", Open: only("f", []byte(b.String()))})
	if err != nil || len(c.Rooms) != anteroom.MaxRooms || c.Rooms[9999].Name != "r9999" {
		t.Errorf("%d rooms, %.200v", len(c.Rooms), err)
	}
}

func TestCertificatesAreRead(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0), DNSNames: []string{"shop.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	file := []byte("listen: ':443'\ntls: {certificates: [{cert: c.pem, key: k.pem}], redirect_http: ':80'}\nsites: [{hosts: '*', origins: 'http://f'}]")
	c, err := Load(LoadOptions{File: "f", Open: only("f", file, "c.pem", certPEM, "k.pem", keyPEM)})
	if err != nil {
		t.Fatal(err)
	}
	if !c.TLS.On() || !slices.Equal(c.Files, []string{"f", "c.pem", "k.pem"}) {
		t.Errorf("TLS %v, files %q", c.TLS.On(), c.Files)
	}
	_, err = Load(LoadOptions{File: "f", Open: only("f", file, "c.pem", keyPEM, "k.pem", certPEM)})
	if err == nil || !strings.Contains(err.Error(), "f:2:22: tls.certificates[0]: is not a certificate with its key") {
		t.Errorf("swapped: %v", err)
	}
	// NATS servers may have an authority of their own and ask for credentials only.
	const nodes, nats = "listen: '10.0.0.1:7222'", "nats: {url: ['tls://10.0.0.1:4222']}"
	for _, tt := range []struct{ servers, tls, want string }{
		{nats, "ca: c.pem", ""},
		{nats, "cert: c.pem, key: k.pem", ""},
		{nats, "cert: c.pem, key: k.pem, ca: c.pem", ""},
		{nats, "cert: c.pem, ca: c.pem", "cert and key together"},
		{nats, "ca: k.pem", "cluster.tls.ca: holds no certificate"},
		{nodes, "ca: c.pem", "cert, key and ca together"},
		{nodes, "cert: c.pem, key: k.pem", "cert, key and ca together"},
	} {
		text := fmt.Sprintf("sites: [{hosts: '*', origins: 'http://f'}]\ncluster: {secret_file: s, tls: {%s}, %s}", tt.tls, tt.servers)
		_, err := Load(LoadOptions{File: "f", Open: only("f", []byte(text), "c.pem", certPEM, "k.pem", keyPEM, "s", []byte(strings.Repeat("0123456789abcdef", 4)))})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with %s: %v", tt.servers, tt.tls, err)
		}
	}
}

// A member that anteroom.Room gains must get a key.
func TestEveryMemberOfARoomHasAKey(t *testing.T) {
	// What the process sets while it runs, and what the API gives.
	elsewhere := []string{"ID", "Settings.Prequeueing", "Settings.OriginDown", "Settings.InfiniteQueue", "Settings.Draining", "Settings.ResetAt", "Settings.RenewalEnded", "Settings.Redeem", "Settings.Ahead", "Settings.Lanes", "Controls", "Revision", "CreatedOn", "ModifiedOn",
		"Events[].ID", "Events[].Seed", "Events[].Overrides", "Events[].CreatedOn", "Events[].ModifiedOn", "Rules[].ID", "Rules[].Version", "Rules[].LastUpdated", "Rules[].Disabled"}
	keyed := func(typ reflect.Type) map[string]bool {
		out := map[string]bool{}
		for _, f := range field.Of(typ) {
			out[fmt.Sprint(f.Index)] = true
		}
		return out
	}
	var missing func(typ reflect.Type, path string)
	missing = func(typ reflect.Type, path string) {
		keys := keyed(typ)
		for sf := range typ.Fields() {
			name := path + sf.Name
			switch {
			case slices.Contains(elsewhere, name):
			case sf.Anonymous || sf.Type.Kind() == reflect.Struct:
				missing(sf.Type, name+".")
			case sf.Type.Kind() == reflect.Slice && sf.Type.Elem().Kind() == reflect.Struct:
				missing(sf.Type.Elem(), name+"[].")
			case !keys[fmt.Sprint(sf.Index)]:
				t.Errorf("anteroom.Room has %s, and the configuration does not", name)
			}
		}
	}
	missing(reflect.TypeFor[anteroom.Room](), "")
	for _, f := range field.Of(reflect.TypeFor[room]()) {
		if f.Doc == "" {
			t.Errorf("%s has no description", f.Key)
		}
	}
}

// A limit that has no effect is a slip: the API refuses it, as published. In a file it is said and
// taken, for files that were right before have to stay so.
func TestLimitsThatDoNotGoTogetherAreSaid(t *testing.T) {
	for text, want := range map[string]string{
		"total_active_users: 5, new_users_per_minute: 60":                                                                 `f:2:75: rooms[0].new_users_per_minute: must be in range [0, total_active_users] (at most 5)`,
		"total_active_users: 60, new_users_per_minute: 60":                                                                "",
		"total_active_users: 5, new_users_per_minute: 60, session_duration: 10s":                                          "",
		"total_active_users: 5, new_users_per_minute: 5, " + anEvent + "total_active_users: 1, new_users_per_minute: 2}]": `f:2:220: rooms[0].events[0].new_users_per_minute: must be in range [0, total_active_users] (at most 1)`,
	} {
		c, err := Load(LoadOptions{File: "f", Open: only("f", []byte("sites: [{hosts: '*', origins: 'http://f'}]\nrooms: [{name: a, host: '*', "+text+"}]\n"))})
		if got := strings.Join(c.Warnings, "\n"); err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", text, got, err, want)
		}
	}
}

const anEvent = "events: [{name: e, event_start_time: 2026-11-27T10:00:00Z, event_end_time: 2026-11-27T11:00:00Z, "

func TestGeoIPFilesAreWatchedAndMustBeReadable(t *testing.T) {
	file := []byte("geoip: [city.mmdb, /srv/asn.mmdb]\nsites: [{hosts: '*', origins: 'http://f'}]\n")
	c, err := Load(LoadOptions{File: "/etc/anteroom/c.yaml", Open: only("/etc/anteroom/c.yaml", file, "/etc/anteroom/city.mmdb", file, "/srv/asn.mmdb", file)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/etc/anteroom/city.mmdb", "/srv/asn.mmdb"}; !slices.Equal(c.GeoIP, want) || !slices.Equal(c.Files[1:], want) {
		t.Errorf("geoip %q, watched %q", c.GeoIP, c.Files)
	}
	_, err = Load(LoadOptions{File: "/etc/anteroom/c.yaml", Open: only("/etc/anteroom/c.yaml", file, "/srv/asn.mmdb", file)})
	if err == nil || !strings.Contains(err.Error(), `c.yaml:1:9: geoip[0]: "/etc/anteroom/city.mmdb" cannot be read`) {
		t.Errorf("a file that is not there: %v", err)
	}
	file = []byte("geoip: ['']\nsites: [{hosts: '*', origins: 'http://f'}]\n")
	if _, err = Load(LoadOptions{File: "f", Open: only("f", file)}); err == nil || !strings.Contains(err.Error(), "geoip[0]: is empty") {
		t.Errorf("a name that is empty: %v", err)
	}
}
