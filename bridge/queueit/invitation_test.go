package queueit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/bridge"
)

// seal makes an enqueue token as the operator's application does.
func seal(header, payload, ti, secret string) string {
	body := ""
	if payload != "" {
		n := aes.BlockSize - len(payload)%aes.BlockSize
		text := []byte(payload + strings.Repeat(string([]byte{byte(n)}), n))
		key, iv := sha256.Sum256([]byte(secret)), md5.Sum([]byte(ti))
		cipher.NewCBCEncrypter(bridge.Block(key), iv[:]).CryptBlocks(text, text)
		body = base64.RawURLEncoding.EncodeToString(text)
	}
	return hashed(base64.RawURLEncoding.EncodeToString([]byte(header))+"."+body, secret)
}

func hashed(text, secret string) string {
	sum := sha256.Sum256([]byte(text + secret))
	return text + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

// enqueueToken makes one for launch1, for a minute.
func enqueueToken(ti string) string {
	return seal(fmt.Sprintf(`{"typ":"QT1","enc":"AES256","iss":1,"exp":%d,"ti":%q,"c":"acme","e":"launch1"}`, time.Now().Add(time.Minute).UnixMilli(), ti), `{"k":"anna"}`, ti, secret)
}

// The published vector is read, and whatever is not exactly as it should be is not.
func TestInvitationVectors(t *testing.T) {
	const (
		secret  = "5ebbf794-1665-4d48-80d6-21ac34be7faedf9e10b3-551a-4682-bb77-fee59d6355d6"
		ti      = "a21d423a-43fd-4821-84fa-4390f6a2fd3e"
		header  = `{"typ":"QT1","enc":"AES256","iss":1534723200000,"exp":1539129600000,"ti":"a21d423a-43fd-4821-84fa-4390f6a2fd3e","c":"ticketania","e":"myevent"}`
		payload = `{"r":0.45678663514,"k":"somekey","cd":{"color":"blue","size":"medium"}}`
	)
	text := seal(header, payload, ti, secret)
	if !strings.HasSuffix(text, ".aZgzkJm57etFaXjjME_-9LjOgPNTTqkp1aJ057HuEiU") {
		t.Fatalf("this is not the vector: %s", text)
	}
	i, err := readInvitation(text, secret)
	if err != nil || i.ID != ti || i.Customer != "ticketania" || i.Event != "myevent" || *i.Expires != 1539129600000 || string(i.payload) != payload {
		t.Errorf("%+v %v", i, err)
	}
	for name, good := range map[string]string{
		"no payload":         seal(header, "", ti, secret),
		"never over":         seal(strings.Replace(header, "1539129600000", "null", 1), payload, ti, secret),
		"more in the header": seal(strings.Replace(header, `"e":`, `"ip":"203.0.113.7","new":{},"e":`, 1), payload, ti, secret),
	} {
		if _, err := readInvitation(good, secret); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	head, body, _ := strings.Cut(text[:strings.LastIndex(text, ".")], ".")
	for name, bad := range map[string]string{
		"empty":            "",
		"two parts":        head + "." + body,
		"four parts":       text + ".",
		"another secret":   seal(header, payload, ti, secret+"x"),
		"changed header":   "e" + text[2:],
		"another type":     seal(strings.Replace(header, "QT1", "QT2", 1), payload, ti, secret),
		"another cipher":   seal(strings.Replace(header, "AES256", "none", 1), payload, ti, secret),
		"no id":            seal(strings.Replace(header, `"ti"`, `"tx"`, 1), payload, "", secret),
		"header no JSON":   seal("{", payload, ti, secret),
		"payload no JSON":  seal(header, "{", ti, secret),
		"another id's IV":  hashed(head+"."+strings.Split(seal(header, payload, "other", secret), ".")[1], secret),
		"half a block":     hashed(head+"."+body[:len(body)-8], secret),
		"padded base64":    hashed(head+"."+body+"==", secret),
		"longer than ever": seal(header, `"`+strings.Repeat("x", maxInvitation)+`"`, ti, secret),
	} {
		if _, err := readInvitation(bad, secret); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// Only visitors with an invitation have a place, each invitation makes one, and a visitor keeps it.
func TestInviteOnly(t *testing.T) {
	inWorld(t, open(sale), func(e *Event) { e.InviteOnly = true }, func(w *world) {
		refused := func(name string, res *http.Response) {
			t.Helper()
			if res.StatusCode != http.StatusForbidden || read(res) != nil {
				t.Errorf("%s: %d %v", name, res.StatusCode, res.Header)
			}
		}
		a, b := w.browser(), w.browser()
		res, _ := b.follow(enqueue(page))
		refused("no invitation", res)
		mine := enqueueToken("one")
		if res := a.send("HEAD", "/launch1?enqueuetoken="+mine); res.StatusCode != http.StatusForbidden {
			t.Errorf("HEAD: %d", res.StatusCode)
		}
		refused("prefetch", a.get("/launch1?enqueuetoken="+mine, "Sec-Purpose", "prefetch"))
		res, _ = a.follow(enqueue(page, "enqueuetoken", mine))
		first := read(res)
		if first == nil {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		if res, _ := a.follow(enqueue(page, "enqueuetoken", mine)); read(res)["q"] != first["q"] {
			t.Error("who comes back is another visitor")
		}
		res, _ = b.follow(enqueue(page, "enqueuetoken", mine))
		refused("a replay", res)
		for name, other := range map[string]string{
			"another event":    `{"typ":"QT1","enc":"AES256","ti":"x1","c":"acme","e":"launch2"}`,
			"another customer": `{"typ":"QT1","enc":"AES256","ti":"x2","c":"other","e":"launch1"}`,
			"over":             fmt.Sprintf(`{"typ":"QT1","enc":"AES256","exp":%d,"ti":"x3","c":"acme"}`, time.Now().UnixMilli()),
		} {
			res, _ := b.follow(enqueue(page, "enqueuetoken", seal(other, "", "", secret)))
			refused(name, res)
		}
		// Of all events of the customer, and without an end.
		if res, _ := b.follow(enqueue(page, "enqueuetoken", seal(`{"typ":"QT1","enc":"AES256","ti":"two","c":"Acme"}`, "", "", secret))); read(res) == nil {
			t.Errorf("a good one: %d %v", res.StatusCode, res.Header)
		}
		if got := w.active(); got != 2 {
			t.Errorf("%d seats", got)
		}
		// After the session the invitation is spent, although the browser has its ticket.
		w.pass(10 * time.Minute)
		for range 3 {
			res, _ = a.follow(enqueue(page, "enqueuetoken", mine))
			refused("after the session", res)
		}
	})
}
