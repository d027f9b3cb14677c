package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func listener(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestSystemdSocketsAreMatchedByAddress(t *testing.T) {
	visitors, admin := listener(t, "127.0.0.1:0"), listener(t, "[::1]:0")
	r := prepareServer(t, "listen: "+visitors.Addr().String()+"\nadmin: \""+admin.Addr().String()+"\"\ndata: data\n"+oneRoom)
	o := r.options()
	o.Inherited = &Inheritance{unnamed: []net.Listener{admin, visitors}}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if s.visitors[0] != visitors || s.admin != admin {
		t.Error("the sockets were not taken for their addresses")
	}
	if a := r.visit("/"); !a.isIn() {
		t.Errorf("got %q", a.body)
	}
}

func TestSingleSystemdSocketServesTheFirstAddress(t *testing.T) {
	visitors := listener(t, "127.0.0.1:0")
	r := prepareServer(t, listenAnywhere+oneRoom)
	o := r.options()
	o.Inherited = &Inheritance{unnamed: []net.Listener{visitors}}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if s.visitors[0] != visitors || s.admin == visitors {
		t.Error("the socket does not serve visitors")
	}
}

func TestSystemdSocketForNoAddressIsRefused(t *testing.T) {
	visitors, stray := listener(t, "127.0.0.1:0"), listener(t, "127.0.0.1:0")
	r := prepareServer(t, "listen: "+visitors.Addr().String()+"\nadmin: localhost:0\nforward_auth: {listen: \"[::1]:0\"}\ndata: data\n"+oneRoom)
	o := r.options()
	o.Inherited = &Inheritance{unnamed: []net.Listener{visitors, stray}}
	_, err := New(t.Context(), o)
	want := "passes " + stray.Addr().String() + ", but the configuration listens on " + visitors.Addr().String() + ", localhost:0, [::1]:0:"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestInheritedIsForThisProcessOnly(t *testing.T) {
	t.Setenv("LISTEN_FDS", "1")
	t.Setenv("LISTEN_PID", "1")
	in, err := Inherited()
	if err != nil || len(in.unnamed) != 0 || os.Getenv("LISTEN_FDS") != "" {
		t.Errorf("got %+v, %v, LISTEN_FDS %q", in, err, os.Getenv("LISTEN_FDS"))
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		socket, address string
		want            bool
	}{
		{"127.0.0.1:0", "127.0.0.1", true},
		{"127.0.0.1:0", "[::1]", false},
		{"127.0.0.1:0", "", false}, // every interface is asked for, one is there
		{":0", "", true},
		{":0", "0.0.0.0", true},
		{":0", "127.0.0.1", false}, // serves more than is asked for
	} {
		l := listener(t, c.socket)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if got := serves(l, c.address+":"+port); got != c.want {
			t.Errorf("%s for %s: %v, want %v", l.Addr(), c.address, got, c.want)
		}
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	next := func() string {
		t.Helper()
		c.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 200)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	r := startServer(t, oneRoom)
	if got := next(); !strings.HasPrefix(got, "READY=1\nMAINPID=") {
		t.Errorf("at the start: %q", got)
	}
	r.reload()
	if got := next(); got != "RELOADING=1" {
		t.Errorf("at a reload: %q", got)
	}
	if got := next(); !strings.HasPrefix(got, "READY=1") {
		t.Errorf("after it: %q", got)
	}
	r.end()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("at the end: %q", got)
	}
}
