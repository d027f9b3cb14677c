package queueit

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

const queueID = "6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77"

// Tokens that the published connectors accept, or refuse for another reason than the hash.
func TestTokenVectors(t *testing.T) {
	for name, vector := range map[string]string{
		"queue":         "e_launch1~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102444800~ce_true~rt_queue~h_2c5325236825b5668697d8782dacfe61ba934f5bb6b289aa7ad4288ec2fb2da4",
		"safetynet":     "e_launch1~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102444800~ce_false~cv_3~rt_safetynet~h_291e5b3d47f57afa9e716c66e3c57a2cb30a4dd20230ac032ced28252846388b",
		"address":       "e_launch1~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102444800~ce_true~rt_queue~hip_af39a4e2cded9c8a3743c60ea86d23c0f20a70f215b2324503d6e5bb442ef31f~h_2d482778e9cc994ca477eec014232db683f0bb49f5c5bf669ac91a7b8258f4e7",
		"expired":       "e_launch1~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102439999~ce_true~rt_queue~h_964cda3b95fbbd8931702b8f8211984c90940b6e5b7453603826a0f63d7f0f82",
		"foreign event": "e_other~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102444800~ce_true~rt_queue~h_7742dc480c2dc7655888374f5b3dfcd5090cfe09fb182f4c53ce137365953f46",
	} {
		text, hash, _ := strings.Cut(vector, "~h_")
		if got := mac(secret, text); got != hash {
			t.Errorf("%s: got %s", name, got)
		}
	}
	for want, one := range map[string]token{
		"e_launch1~q_6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77~ts_4102444800~ce_false~cv_3~rt_safetynet~h_291e5b3d47f57afa9e716c66e3c57a2cb30a4dd20230ac032ced28252846388b": {event: "launch1", queueID: queueID, until: 4102444800, minutes: 3, why: bySafetyNet},
	} {
		if got := one.sign(secret); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	bound := token{event: "launch1", queueID: queueID, until: 4102444800, minutes: 3, why: byQueue, client: "203.0.113.7"}.sign(secret)
	if !strings.Contains(bound, "~rt_queue~hip_af39a4e2cded9c8a3743c60ea86d23c0f20a70f215b2324503d6e5bb442ef31f~h_") {
		t.Errorf("bound to an address: %s", bound)
	}
}

// Both times of a token are over when the seat comes free, whatever is left of the session, and no time is given away.
func TestATokenFitsIntoItsSession(t *testing.T) {
	for _, c := range []struct {
		session time.Duration
		fixed   bool
		after   time.Duration // admission
		redeem  time.Duration
		minutes int
	}{
		{10 * time.Minute, false, 0, time.Minute, 10},
		{10 * time.Minute, false, time.Hour, time.Minute, 10}, // renewed
		{61 * time.Second, false, 0, time.Minute, 2},          // rounded up
		{time.Second, false, 0, time.Minute, 1},
		{10 * time.Minute, true, 0, time.Minute, 10},
		{10 * time.Minute, true, 50 * time.Second, 10 * time.Second, 10},
		{10 * time.Minute, true, 51 * time.Second, time.Minute, 9},
		{10 * time.Minute, true, 9 * time.Minute, time.Minute, 1},
		{10 * time.Minute, true, 590 * time.Second, 10 * time.Second, 1},
		{10 * time.Minute, true, 591 * time.Second, 0, 0},
		{10 * time.Minute, true, 20 * time.Minute, 0, 0},
	} {
		accepted := anteroom.Time(1_764_000_000_000_000)
		set := anteroom.Settings{SessionDuration: c.session, DisableSessionRenewal: c.fixed, Redeem: time.Minute}
		d := anteroom.Decision{At: accepted.Add(c.after), Ticket: anteroom.Ticket{AcceptedAt: accepted}}
		if redeem, minutes := lives(set, d); redeem != c.redeem || minutes != c.minutes {
			t.Errorf("%+v: %v and %d minutes", c, redeem, minutes)
		}
	}
}

// A token takes the place of another one, and comes before the fragment.
func TestWithToken(t *testing.T) {
	for from, want := range map[string]string{
		page:                         page + "?queueittoken=T",
		page + "?a=1":                page + "?a=1&queueittoken=T",
		page + "?a=1&queueittoken=X": page + "?a=1&queueittoken=T",
		page + "?queueittoken=X&b=%20two&queueittoken=Y#top": page + "?b=%20two&queueittoken=T#top",
		page + "?": page + "?queueittoken=T",
	} {
		if got := withToken(from, "T"); got != want {
			t.Errorf("%s: got %s", from, got)
		}
	}
}
