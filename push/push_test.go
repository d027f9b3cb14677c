package push

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The example of RFC 8291, section 5 and appendix A.
func TestEncryptsAsPublished(t *testing.T) {
	t.Parallel()
	s := Subscription{
		Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
		P256DH:   "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
		Auth:     "BTBZMqHH6r4Tts7J_aSIgg",
	}
	private, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.encryptWith([]byte("When I grow up, I want to be a watermelon"), private, [16]byte(decode(t, "DGv6ra1nlYgDCS1FRnbzlw")))
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if err != nil || base64.RawURLEncoding.EncodeToString(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, base64.RawURLEncoding.EncodeToString(got), want)
	}
}

// browser is the other end: what it does is written from RFC 8291 and 8188, not with the functions of the package.
type browser struct {
	private *ecdh.PrivateKey
	auth    [16]byte
}

func newBrowser(t *testing.T, endpoint string) (*browser, Subscription) {
	t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{private: private}
	rand.Read(b.auth[:])
	text := base64.RawURLEncoding.EncodeToString
	return b, Subscription{Endpoint: endpoint, P256DH: text(private.PublicKey().Bytes()), Auth: text(b.auth[:])}
}

func (b *browser) read(t *testing.T, body []byte) string {
	t.Helper()
	salt, size, id := body[:16], binary.BigEndian.Uint32(body[16:]), int(body[20])
	theirs, err := ecdh.P256().NewPublicKey(body[21 : 21+id])
	if err != nil || size != 4096 || len(body) > 4096 {
		t.Fatalf("header: record size %d, %d bytes: %v", size, len(body), err)
	}
	shared, err := b.private.ECDH(theirs)
	if err != nil {
		t.Fatal(err)
	}
	ikm := expand(shared, b.auth[:], "WebPush: info\x00"+string(b.private.PublicKey().Bytes())+string(theirs.Bytes()), sha256.Size)
	block, _ := aes.NewCipher(expand(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	open, _ := cipher.NewGCM(block)
	plain, err := open.Open(nil, expand(ikm, salt, "Content-Encoding: nonce\x00", 12), body[21+id:], nil)
	if err != nil || len(plain) == 0 || plain[len(plain)-1] != 2 {
		t.Fatalf("the record does not open: %v", err)
	}
	return string(plain[:len(plain)-1])
}

func TestARequestIsSignedAndForOneBrowser(t *testing.T) {
	t.Parallel()
	key, err := NewKey([32]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := NewKey([32]byte{1, 2, 3}); again.Public() != key.Public() {
		t.Error("the same seed made another key")
	}
	b, s := newBrowser(t, "https://push.example.net:8443/p/abc?x=1")
	now := time.Unix(1_800_000_000, 0)
	r, err := key.Request(context.Background(), s, []byte(`{"title":"It’s your turn"}`), "https://shop.example.com", now, now.Add(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Ttl": "300", "Urgency": "high", "Topic": "anteroom", "Content-Encoding": "aes128gcm"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	body, _ := io.ReadAll(r.Body)
	if got := b.read(t, body); got != `{"title":"It’s your turn"}` {
		t.Errorf("the browser reads %q", got)
	}
	// RFC 8292, section 3, verified with the standard library.
	var token, public string
	if _, err := fmt.Sscanf(strings.ReplaceAll(r.Header.Get("Authorization"), ",", ""), "vapid t=%s k=%s", &token, &public); err != nil || public != key.Public() {
		t.Fatalf("%q: %v", r.Header.Get("Authorization"), err)
	}
	parts := strings.Split(token, ".")
	signature := decode(t, parts[2])
	point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), decode(t, public))
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || len(signature) != 64 || !ecdsa.Verify(point, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("the signature is wrong: %v", err)
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if json.Unmarshal(decode(t, parts[0]), &head) != nil || head.Alg != "ES256" || head.Typ != "JWT" {
		t.Errorf("header %+v", head)
	}
	if json.Unmarshal(decode(t, parts[1]), &claims) != nil || claims.Aud != "https://push.example.net:8443" || claims.Sub != "https://shop.example.com" ||
		claims.Exp <= now.Unix() || claims.Exp > now.Add(24*time.Hour).Unix() {
		t.Errorf("claims %+v", claims)
	}
}

func TestASubscriptionIsChecked(t *testing.T) {
	t.Parallel()
	_, good := newBrowser(t, "https://push.example.net/p/abc")
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	off := decode(t, good.P256DH)
	off[64] ^= 1 // not on the curve
	for name, spoil := range map[string]func(s *Subscription){
		"no endpoint":    func(s *Subscription) { s.Endpoint = "" },
		"a path":         func(s *Subscription) { s.Endpoint = "/p/abc" },
		"another scheme": func(s *Subscription) { s.Endpoint = "file:///etc/passwd" },
		"a user":         func(s *Subscription) { s.Endpoint = "https://me:you@push.example.net/" },
		"a fragment":     func(s *Subscription) { s.Endpoint += "#x" },
		"a control":      func(s *Subscription) { s.Endpoint += "\r\nX: y" },
		"a long one":     func(s *Subscription) { s.Endpoint += strings.Repeat("a", MaxEndpoint) },
		"no key":         func(s *Subscription) { s.P256DH = "" },
		"no point":       func(s *Subscription) { s.P256DH = base64.RawURLEncoding.EncodeToString(off) },
		"a compressed key": func(s *Subscription) {
			s.P256DH = base64.RawURLEncoding.EncodeToString(append([]byte{2}, off[1:33]...))
		},
		"padding":        func(s *Subscription) { s.P256DH += "=" },
		"a short secret": func(s *Subscription) { s.Auth = s.Auth[:20] },
	} {
		s := good
		if spoil(&s); anteroom.KindOf(s.Check()) != anteroom.Invalid {
			t.Errorf("%s: %v", name, s.Check())
		}
	}
	if text := fmt.Sprintf("%v %+v %s", good, good, good); strings.Contains(text, "example") {
		t.Errorf("it prints as %s", text)
	}
}

func TestAMessageIsBounded(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t, "https://push.example.net/p/abc")
	long := strings.Repeat("x", MaxMessage)
	body, err := s.encrypt([]byte(long))
	if err != nil || len(body) != 4096 || b.read(t, body) != long {
		t.Errorf("%d bytes: %v", len(body), err)
	}
	if _, err := s.encrypt([]byte(long + "x")); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a longer message: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		after  string
		want   Answer
		wait   time.Duration
	}{
		{201, "", Sent, 0}, {200, "", Sent, 0}, {202, "", Sent, 0}, {404, "", Gone, 0}, {410, "", Gone, 0}, {429, "30", Later, 30 * time.Second}, {429, "", Later, 0},
		{503, "9999999999", Later, 0}, {500, "100000", Later, 24 * time.Hour}, {502, "-3", Later, 0}, {503, "Fri, 31 Dec 1999 23:59:59 GMT", Later, 0},
		{400, "", Never, 0}, {401, "", Never, 0}, {403, "", Never, 0}, {413, "", Never, 0}, {301, "", Never, 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.after)
		if got, wait := AnswerOf(c.status, h); got != c.want || wait != c.wait && c.after != "9999999999" {
			t.Errorf("%d, Retry-After %q: %v, %v", c.status, c.after, got, wait)
		}
	}
}
