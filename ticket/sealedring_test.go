package ticket

import (
	"bytes"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func TestSealedRing(t *testing.T) {
	const secret, other = "a secret of enough characters", "another secret of enough characters"
	ring := NewKeyring(time.Unix(1_700_000_000, 0))
	next, err := ring.Prepare(time.Unix(1_700_000_100, 0))
	if err != nil {
		t.Fatal(err)
	}
	sealed := next.Sealed(secret, "shop")
	if bytes.Contains(sealed, next.current.secret[:]) || bytes.Contains(sealed, []byte("secret")) {
		t.Error("what is sealed can be read")
	}
	for _, secrets := range [][]string{{secret}, {other, secret}} {
		got, err := OpenRing(sealed, "shop", secrets...)
		if err != nil || !bytes.Equal(got.marshal(), next.marshal()) {
			t.Errorf("%q: %v", secrets, err)
		}
	}
	if again := next.Sealed(secret, "shop"); bytes.Equal(again, sealed) {
		t.Error("sealed twice it is the same")
	}
	denied := func(what string, data []byte, owner string, secrets ...string) {
		t.Helper()
		if _, err := OpenRing(data, owner, secrets...); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied("another secret", sealed, "shop", other)
	denied("no secret", sealed, "shop")
	denied("another cluster", sealed, "cinema", secret)
	for i := 1; i < len(sealed); i++ {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		denied("a flipped bit", changed, "shop", secret)
		denied("a cut", sealed[:i], "shop", secret)
	}
	for _, data := range [][]byte{nil, {0}, []byte("{}"), make([]byte, 1<<20)} {
		if _, err := OpenRing(data, "shop", secret); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%.20q: %v", data, err)
		}
	}
	if got, err := FromExport(ring.Export()); err != nil || !bytes.Equal(got.marshal(), ring.marshal()) {
		t.Error(err)
	}
	if _, err := FromExport([]byte("{}")); anteroom.KindOf(err) != anteroom.Invalid {
		t.Error(err)
	}
}
