package extauthz

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// recorded is a CheckRequest for GET /a?b=1 of shop.example.com from 192.0.2.7.
var recorded = func() []byte {
	field := func(n protowire.Number, v string) string { return string(bytesField(n, []byte(v))) }
	header := func(k, v string) string { return field(13, field(1, field(1, k)+field(3, v))) }
	http := field(2, "GET") + field(4, "/a?b=1") + field(5, "shop.example.com") + field(6, "https") + field(10, "HTTP/1.1") +
		header(":path", "/a?b=1") + header("cookie", "a=1") + header("cookie", "b=2")
	return []byte(field(1, field(1, field(1, field(1, field(2, "192.0.2.7"))))+field(4, field(2, http))+field(10, field(1, "room")+field(2, "shop"))))
}()

func TestReadsAQuestion(t *testing.T) {
	c, err := Read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if c.Method != "GET" || c.Target != "/a?b=1" || c.Host != "shop.example.com" || c.Scheme != "https" || c.Protocol != "HTTP/1.1" || c.Source != "192.0.2.7" || c.Context["room"] != "shop" ||
		strings.Join(c.Header["Cookie"], ";") != "a=1;b=2" || len(c.Header) != 1 {
		t.Errorf("read %+v", c)
	}
	for n := range len(recorded) { // the end of a message is not marked, so some beginnings are messages without what we need
		if _, err := Read(recorded[:n]); err == nil {
			t.Errorf("%d bytes of it are a question", n)
		}
	}
}

func TestFrames(t *testing.T) {
	if got, _, err := ReadFrame(bytes.NewReader(Frame(recorded))); err != nil || !bytes.Equal(got, recorded) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	for text, want := range map[string]int{"": InvalidArgument, "00000000": InvalidArgument, "0000000002ff": InvalidArgument, "0100000000": Unimplemented, "0000020001": ResourceExhausted, "00ffffffff": ResourceExhausted} {
		in, _ := hex.DecodeString(text)
		if _, code, err := ReadFrame(bytes.NewReader(in)); err == nil || code != want {
			t.Errorf("%q: %d, %v, want %d", text, code, err, want)
		}
	}
}

// No message makes the reader fail otherwise than by an error, and what it reads is complete.
func FuzzRead(f *testing.F) {
	f.Add(recorded)
	f.Add([]byte{})
	f.Add([]byte{0x0a, 0x00})
	f.Add(bytes.Repeat([]byte{0x0b}, 100)) // groups within groups
	f.Fuzz(func(t *testing.T, message []byte) {
		if c, err := Read(message); err == nil && (c.Method == "" || c.Host == "" || c.Target == "") {
			t.Errorf("read %+v", c)
		}
	})
}
