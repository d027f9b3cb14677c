package engine

import (
	"bytes"
	"reflect"
	"testing"
)

// fuzzWire: hostile bytes are an error and an empty message, or a message that encodes to
// just these bytes again, unless it has extensions that are skipped: then it has one encoding
// without them. The seeds are wireExamples and damaged ones.
func fuzzWire(f *testing.F, w wired) {
	f.Fuzz(func(t *testing.T, b []byte) {
		given := bytes.Clone(b)
		m, err := w.parse(b)
		if !bytes.Equal(b, given) {
			t.Fatal("parsing changed the bytes")
		}
		if err != nil {
			if !reflect.DeepEqual(m, w.empty()) {
				t.Fatalf("%v, and a message: %+v", err, m)
			}
			return
		}
		again := w.encode(nil, m)
		if bytes.Equal(again, b) {
			return
		}
		if n, err := w.parse(again); len(again) >= len(b) || err != nil || !reflect.DeepEqual(n, m) {
			t.Fatalf("%x\nis encoded again as %x", b, again)
		}
	})
}

func FuzzReportWire(f *testing.F)   { fuzzWire(f, wires[0]) }
func FuzzFromDoorWire(f *testing.F) { fuzzWire(f, wires[2]) }

func FuzzToSiteWire(f *testing.F) {
	fuzzWire(f, cached(wires[1], (*FiguresCache).AppendToSite, (*FiguresCache).ParseToSite))
}

func FuzzToDoorWire(f *testing.F) {
	fuzzWire(f, cached(wires[3], (*FiguresCache).AppendToDoor, (*FiguresCache).ParseToDoor))
}

// cached is the wire with caches that have heard the message before.
func cached[T any](w wired, appendTo func(*FiguresCache, []byte, *T) []byte, parse func(*FiguresCache, []byte) (T, error)) wired {
	w.parse = func(b []byte) (any, error) {
		var c FiguresCache
		parse(&c, b)
		m, err := parse(&c, b)
		return &m, err
	}
	w.encode = func(b []byte, m any) []byte {
		var c FiguresCache
		appendTo(&c, nil, m.(*T))
		return appendTo(&c, b, m.(*T))
	}
	return w
}
