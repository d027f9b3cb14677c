package pass

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/proof"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

// vectors are passes, good and bad, for whoever verifies them in another language: at the moment "now", the good ones go to
// the origin, and all others to Anteroom.
type vectors struct {
	About    string          `json:"about"`
	Issuer   string          `json:"issuer"`
	Audience string          `json:"audience"`
	Room     anteroom.RoomID `json:"room"`
	Now      int64           `json:"now"`
	JWKS     json.RawMessage `json:"jwks"`
	PEM      string          `json:"pem"`
	Edge     string          `json:"edge"`
	Secrets  []vectorSecret  `json:"secrets"`
	Cases    []vector        `json:"cases"`
}

type vectorSecret struct {
	Kid    string `json:"kid"`
	Secret string `json:"secret"`
}

type vector struct {
	Name string `json:"name"`
	// Alg is that of the edge that the case is for.
	Alg    string `json:"alg"`
	Cookie string `json:"cookie"` // the Cookie header
	Good   bool   `json:"good"`
	Why    string `json:"why,omitempty"`
}

// TestVectors reads the vectors as every edge must.
func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	var file vectors
	if err := json.Unmarshal(must(os.ReadFile(vectorsFile))(t), &file); err != nil {
		t.Fatal(err)
	}
	want := Want{Issuer: file.Issuer, Audience: file.Audience, Room: file.Room}
	var secrets []EdgeSecret
	for _, s := range file.Secrets {
		secrets = append(secrets, EdgeSecret{s.Kid, s.Secret})
	}
	edges := map[string]*Verifier{"ES256": must(NewVerifier(file.JWKS, want))(t), "HS256": must(NewEdgeVerifier(secrets, want))(t)}
	seen := map[string]bool{}
	for _, c := range file.Cases {
		seen[c.Why] = true
		claims, err := edges[c.Alg].Cookies([]string{c.Cookie}, Cookie, time.Unix(file.Now, 0))
		switch {
		case c.Good && (err != nil || claims.Session == ""):
			t.Errorf("%s %s: %v", c.Alg, c.Name, err)
		case !c.Good && err == nil:
			t.Errorf("%s %s: accepted", c.Alg, c.Name)
		case !c.Good && !strings.HasSuffix(err.Error(), c.Why):
			t.Errorf("%s %s: %v, want %s", c.Alg, c.Name, err, c.Why)
		}
	}
	for _, err := range []error{ErrNone, ErrTwo, ErrMalformed, ErrKey, ErrSignature, ErrUse, ErrIssuer, ErrAudience, ErrRoom, ErrExpired, ErrNotYet} {
		if !seen[err.Error()] {
			t.Errorf("no vector is refused because of %q", err)
		}
	}
}

func writeVectors(t *testing.T) {
	keys := keysOf(t, keyA, keyB)
	file := vectors{About: "Passes for tests of edges: at the moment \"now\" those that are good go to the origin, all others to Anteroom. The keys are for tests only.",
		Issuer: "anteroom", Audience: zone, Room: shop, Now: morning.Unix(), JWKS: keys.JWKS(), PEM: string(keys.PEM()), Edge: "edge"}
	secrets := must(keys.Edge(file.Edge))(t)
	for _, s := range secrets {
		file.Secrets = append(file.Secrets, vectorSecret{s.ID, s.Text})
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for _, alg := range []string{"ES256", "HS256"} {
		edge := map[string]string{"HS256": file.Edge}[alg]
		issuer, next := issuerOf(t, keys, edge), issuerOf(t, keysOf(t, keyB), edge)
		issue := func(i *Issuer, at time.Time) string { return must(i.Issue(sid, at, half))(t) }
		other := func(change func(*Issuer)) string {
			i := *issuer
			change(&i)
			return issue(&i, morning)
		}
		signed := func(header, payload string, sign func([]byte) ([]byte, error)) string {
			text := b64([]byte(header)) + "." + payload
			return text + "." + b64(must(sign([]byte(text)))(t))
		}
		good := issue(issuer, morning)
		parts := strings.Split(good, ".")
		kid := map[string]string{"ES256": "pass-" + keyA.ID, "HS256": secrets[0].ID}[alg]
		withoutUse, _ := json.Marshal(map[string]any{"iss": "anteroom", "aud": zone, "room": shop, "sid": sid, "sub": sid, "iat": morning.Unix(), "nbf": morning.Unix(), "exp": morning.Unix() + 30})
		claims := must(base64.RawURLEncoding.DecodeString(parts[1]))(t)
		forged := b64([]byte(strings.Replace(string(claims), sid, "BBBBBBBBBBBBBBBBBBBBBB", 1)))
		assertion := must(must(proof.New(proof.Config{Keys: []proof.Key{{ID: kid, Seed: proof.Seed(keyA.Seed)}}, SubjectKey: proof.Seed{9}}))(t).Assertion(shop, zone, anteroom.ID{1}, morning))(t)
		byText := func(secret string) func([]byte) ([]byte, error) {
			return func(b []byte) ([]byte, error) { return signHS256([]byte(secret), b), nil }
		}
		add := func(name, cookie string, why error) {
			v := vector{Name: name, Alg: alg, Cookie: cookie, Good: why == nil}
			if why != nil {
				v.Why = why.Error()
			}
			file.Cases = append(file.Cases, v)
		}
		one := func(name, token string, why error) { add(name, Cookie+"="+token, why) }
		one("good", good, nil)
		add("good, among others", "a=b; "+Cookie+"="+good+"; c=d", nil)
		one("good, of the key that comes next", issue(next, morning), nil)
		one("good, at an edge whose clock is 5 s behind", issue(issuer, morning.Add(Early)), nil)
		one("good, in its last second", issue(issuer, morning.Add(-29*time.Second)), nil)
		add("no cookie", "a=b", ErrNone)
		add("another cookie that ends alike", "x"+Cookie+"="+good, ErrNone)
		add("two cookies", Cookie+"="+good+"; "+Cookie+"="+good, ErrTwo)
		one("expired", issue(issuer, morning.Add(-half)), ErrExpired)
		one("expired an hour ago", issue(issuer, morning.Add(-time.Hour)), ErrExpired)
		one("not yet valid", issue(issuer, morning.Add(Early+time.Second)), ErrNotYet)
		one("another room", other(func(i *Issuer) { i.room = "1" + shop[1:] }), ErrRoom)
		one("another audience", other(func(i *Issuer) { i.audience = "other.example.com" }), ErrAudience)
		one("another issuer", other(func(i *Issuer) { i.issuer = "somebody" }), ErrIssuer)
		one("not for use as a pass", signed(`{"alg":"`+alg+`","typ":"JWT","kid":"`+kid+`"}`, b64(withoutUse), issuer.sign), ErrUse)
		one("a proof of admission", assertion, ErrKey)
		one("alg none", b64([]byte(`{"alg":"none","typ":"JWT","kid":"`+kid+`"}`))+"."+parts[1]+".", ErrKey)
		one("alg none with the signature", b64([]byte(`{"alg":"none","typ":"JWT","kid":"`+kid+`"}`))+"."+parts[1]+"."+parts[2], ErrKey)
		if alg == "ES256" {
			one("HS256 with the PEM as secret", signed(`{"alg":"HS256","typ":"JWT","kid":"`+kid+`"}`, parts[1], byText(file.PEM)), ErrKey)
			one("HS256 with the name of the key file as secret", signed(`{"alg":"HS256","typ":"JWT","kid":"`+kid+`"}`, parts[1], byText("/etc/haproxy/pass.pem")), ErrKey)
			one("HS256 with the name of the key file as secret, under the header of ES256", signed(`{"alg":"ES256","typ":"JWT","kid":"`+kid+`"}`, parts[1], byText("/etc/haproxy/pass.pem")), ErrSignature)
		} else {
			one("another edge's", issue(issuerOf(t, keys, "other"), morning), ErrKey)
			one("another edge's secret under this name", signed(`{"alg":"HS256","typ":"JWT","kid":"`+kid+`"}`, parts[1], byText(must(keys.Edge("other"))(t)[0].Text)), ErrSignature)
		}
		one("unknown kid", signed(`{"alg":"`+alg+`","typ":"JWT","kid":"unknown"}`, parts[1], issuer.sign), ErrKey)
		one("no kid", signed(`{"alg":"`+alg+`","typ":"JWT"}`, parts[1], issuer.sign), ErrKey)
		one("other claims", parts[0]+"."+forged+"."+parts[2], ErrSignature)
		one("a changed signature", parts[0]+"."+parts[1]+"."+changed(parts[2]), ErrSignature)
		one("a signature of another length", parts[0]+"."+parts[1]+"."+parts[2][:40], ErrSignature)
		one("a signature of 5 kB", parts[0]+"."+parts[1]+"."+strings.Repeat("A", 5000), ErrMalformed)
		one("no signature", parts[0]+"."+parts[1]+".", ErrSignature)
		one("two parts", parts[0]+"."+parts[1], ErrMalformed)
		one("four parts", good+".x", ErrMalformed)
		one("quoted", `"`+good+`"`, ErrKey)
		one("empty", "", ErrMalformed)
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorsFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// changed returns an encoded signature with another first character.
func changed(signature string) string {
	if signature[0] == 'A' {
		return "B" + signature[1:]
	}
	return "A" + signature[1:]
}

func FuzzVerify(f *testing.F) {
	var file vectors
	data, err := os.ReadFile(vectorsFile)
	if err != nil || json.Unmarshal(data, &file) != nil {
		f.Fatal(err)
	}
	good := map[string]bool{}
	for _, c := range file.Cases {
		f.Add(c.Cookie)
		if c.Good {
			_, token, _ := strings.Cut(c.Cookie, Cookie+"=")
			token, _, _ = strings.Cut(token, ";")
			good[token] = true
		}
	}
	keys := keysOf(f, keyA, keyB)
	both := []*Verifier{verifierOf(f, keys, ""), verifierOf(f, keys, file.Edge)}
	issuer := issuerOf(f, keys, "")
	f.Fuzz(func(t *testing.T, cookie string) {
		for _, v := range both {
			_, err := v.Cookies([]string{cookie}, Cookie, morning)
			if err == nil && !containsOne(good, cookie) {
				t.Errorf("accepted: %q", cookie)
			}
			if err != nil && anteroom.KindOf(err) != anteroom.Denied {
				t.Errorf("%q: %v", cookie, err)
			}
		}
		if left := issuer.Lasts(cookie, morning); left < 0 {
			t.Errorf("%q lasts %v", cookie, left)
		}
	})
}

func containsOne(good map[string]bool, cookie string) bool {
	for token := range good {
		if strings.Contains(cookie, token) {
			return true
		}
	}
	return false
}
