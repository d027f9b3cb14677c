package cluster_test

import (
	"bytes"
	"testing"

	"github.com/anteroom/anteroom/cluster"
)

func TestFrames(t *testing.T) {
	rooms := [][16]byte{{1}, {2}, {1}}
	bodies := [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("x"), 300)}
	var b []byte
	for i := range rooms {
		before := len(b)
		b = cluster.AppendFrame(b, rooms[i], bodies[i])
		if len(b)-before > len(bodies[i])+cluster.FrameOverhead {
			t.Errorf("entry %d takes %d bytes", i, len(b)-before)
		}
	}
	frames, err := cluster.Frames(b)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for room, body := range frames {
		if room != rooms[i] || !bytes.Equal(body, bodies[i]) {
			t.Errorf("entry %d: %x %q", i, room, body)
		}
		i++
	}
	if i != len(rooms) {
		t.Errorf("%d entries", i)
	}
	for range frames {
		break
	}
	for n := range b {
		if n == 0 || n == 20 || n == 37 {
			continue // between entries
		}
		if _, err := cluster.Frames(b[:n]); err == nil {
			t.Errorf("the first %d bytes of it are a frame", n)
		}
	}
	if _, err := cluster.Frames(append(make([]byte, 16), 0x80, 0)); err == nil {
		t.Error("a length of two bytes for 0 is accepted")
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(cluster.AppendFrame(cluster.AppendFrame(nil, [16]byte{1}, []byte("one")), [16]byte{2}, nil))
	f.Add(append(make([]byte, 16), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := cluster.Frames(b)
		if err != nil {
			return
		}
		var again []byte
		for room, body := range frames {
			again = cluster.AppendFrame(again, room, body)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x reads as %x", b, again)
		}
	})
}
