package shop_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

func TestLogRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := shop.NewLog(&b, time.Now())
		s := newShop(t, shop.Config{Log: log})
		time.Sleep(1500 * time.Microsecond)
		get(s, "/cart?x=1", "X-Visitor", "17", "X-Visitor-Sent", "1400", "X-Anteroom-Assertion", token("s1"))
		get(s, "/healthz")
		get(s, "/", "X-Visitor", "a\n\"b", "X-Visitor-Sent", "99999999")
		if err := log.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := shop.ReadLog(&b)
		if err != nil {
			t.Fatal(err)
		}
		want := []shop.Request{
			{Seen: 1500, Sent: 1400, Visitor: "17", Session: "s1", Method: "GET", Path: "/cart"},
			{Seen: 1500, Visitor: "a\n\"b", Method: "GET", Path: "/"},
		}
		if !reflect.DeepEqual(got, want) || log.Lines() != 2 {
			t.Errorf("got %+v\nwant %+v (%d lines)", got, want, log.Lines())
		}
	})
}

func TestBadLogs(t *testing.T) {
	for _, c := range []struct{ log, fault string }{
		{"{\"us\":1}\nnonsense\n", "line 2"},
		{"{\"us\":1}\n\n{\"us\":5,\"sent\":6}\n", "line 3: sent at 6, seen at 5"},
		{"{\"us\":-1}\n", "line 1"},
		{strings.Repeat("x", 20_000), "line 1"},
	} {
		if _, err := shop.ReadLog(strings.NewReader(c.log)); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%.30q: %v, want %q", c.log, err, c.fault)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestLogThatCannotBeWrittenSaysSo(t *testing.T) {
	log := shop.NewLog(fullDisk{}, time.Now())
	get(newShop(t, shop.Config{Log: log}), "/")
	for range 2 {
		if err := log.Flush(); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("flush: %v", err)
		}
	}
}
