package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/push/pushtest"
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

func newBrowser(t *testing.T, endpoint string) (*pushtest.Browser, Subscription) {
	t.Helper()
	b := pushtest.NewBrowser(t, endpoint)
	return b, Subscription{Endpoint: b.Endpoint, P256DH: b.P256DH, Auth: b.Auth}
}

func TestARequestIsAsPublished(t *testing.T) {
	t.Parallel()
	key := NewKey([32]byte{1, 2, 3})
	if NewKey([32]byte{1, 2, 3}).Public() != key.Public() || NewKey([32]byte{1, 2, 4}).Public() == key.Public() {
		t.Error("the key is not that of the seed")
	}
	service := pushtest.Serve(t) // which verifies
	b := service.Browser()
	now := time.Now()
	r, err := key.Request(t.Context(), Subscription{b.Endpoint, b.P256DH, b.Auth}, []byte(`{"title":"It’s your turn"}`), "https://shop.example.com", now, now.Add(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if got, want := <-service.Got, (pushtest.Message{Text: `{"title":"It’s your turn"}`, TTL: 300, Topic: "anteroom", Contact: "https://shop.example.com", Key: key.Public()}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
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
		"a long one":     func(s *Subscription) { s.Endpoint += strings.Repeat("a", maxEndpoint) },
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
	long := strings.Repeat("x", maxMessage)
	body, err := s.encrypt([]byte(long))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Read(body); err != nil || len(body) != 4096 || got != long {
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
