//go:build unix

package natslink

import (
	"bytes"
	"testing"
	"time"
)

func TestEnvelopeNoticesEveryBit(t *testing.T) {
	e := envelope{number: 7, extra: 1 << 60, kind: kindRecord, data: []byte("a record")}
	sealed := e.seal("subject")
	got, err := unseal("subject", sealed)
	if err != nil || got.number != e.number || got.extra != e.extra || got.kind != e.kind || !bytes.Equal(got.data, e.data) {
		t.Fatalf("%v, %v; want %v", got, err, e)
	}
	if _, err := unseal("another", sealed); err == nil {
		t.Error("it opens under another subject")
	}
	for i := range len(sealed) * 8 {
		b := bytes.Clone(sealed)
		b[i/8] ^= 1 << (i % 8)
		if _, err := unseal("subject", b); err == nil {
			t.Errorf("bit %d can be flipped", i)
		}
	}
	for n := range sealed {
		if _, err := unseal("subject", sealed[:n]); err == nil {
			t.Errorf("it can be cut to %d bytes", n)
		}
	}
}

func TestMarkIsReadAsWritten(t *testing.T) {
	want := mark{turn: 9, ready: true, keys: 1 << 63, journalFirst: 3, journalLast: 4, retention: time.Hour}
	slot := sealMark(want.String())
	if got, err := parseMark([]byte(slot)); err != nil || got != want || len(slot) != markSlot {
		t.Errorf("%v, %v, %d bytes; want %v", got, err, len(slot), want)
	}
}

func FuzzUnseal(f *testing.F) {
	for _, k := range []kind{kindRecord, kindValue, kindDeleted} {
		f.Add("journal", envelope{number: 1, extra: 2, kind: k, data: []byte("data")}.seal("journal"))
	}
	f.Add("key", envelope{number: 1, kind: kindLease, data: sealLease(time.Unix(1, 0), time.Second, []byte("v"))}.seal("key"))
	f.Add("journal", envelope{number: 1, kind: kindNamed, data: []byte("\x01ndata")}.seal("journal"))
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, subject string, b []byte) {
		e, err := unseal(subject, b)
		if err == nil && !bytes.Equal(e.seal(subject), b) {
			t.Errorf("%x opens as %v, which is sealed otherwise", b, e)
		}
		if err == nil && e.kind == kindNamed {
			e.named("n")
		}
		if err == nil && e.kind == kindLease {
			leaseEnds(e.data, time.Now())
		}
	})
}

func FuzzMark(f *testing.F) {
	f.Add([]byte(sealMark(mark{}.String())))
	f.Add([]byte(sealMark(mark{turn: 1, ready: true, keys: 5, journalFirst: 1, journalLast: 9, retention: time.Hour}.String())))
	f.Add([]byte("anteroom store 1 turn"))
	f.Fuzz(func(t *testing.T, slot []byte) {
		m, err := parseMark(slot)
		if err != nil {
			return
		}
		if again, err := parseMark([]byte(sealMark(m.String()))); err != nil || again != m {
			t.Errorf("%q is %v, which reads back as %v, %v", slot, m, again, err)
		}
	})
}
