package server

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// What a process that ends TLS and has a provider of challenges says of an event tomorrow.
func TestChecklistOfAProcess(t *testing.T) {
	r := prepareServer(t, "")
	writeCertificate(t, r.dir, "a", 1, "127.0.0.1", "shop.example.com")
	r.write(listenAnywhere + "tls: {certificates: [{cert: a.pem, key: a.key}]}\nchallenge: {provider: work}\nsites: [{hosts: [shop.example.com, other.example.com], origins: ORIGIN}]\nrooms: []\n")
	r.start()
	zone, room := r.makeRoom("example.com", anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "shop.example.com"}}, Settings: anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10}})
	tomorrow := time.Now().Add(24 * time.Hour)
	event, err := r.s.Manager().CreateEvent(t.Context(), operator, zone, room.ID, anteroom.Event{Name: "drop", Start: anteroom.StampOf(tomorrow), End: anteroom.StampOf(tomorrow.Add(time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	look := func() map[string]manage.Check {
		t.Helper()
		list, err := r.s.Manager().Checklist(t.Context(), operator, zone, room.ID, event.ID)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]manage.Check{}
		for _, c := range list.Checks {
			all[c.Check] = c
		}
		return all
	}
	ends := r.s.certs.expires()
	got := look()
	if c := got["certificate"]; (c.Result == manage.CheckOK) != ends.After(tomorrow.Add(time.Hour)) || !strings.Contains(c.What, ends.UTC().Format(time.RFC3339)) {
		t.Errorf("a certificate that ends %v: %+v", ends, c)
	}
	if c := got["challenge"]; c.Result != manage.CheckNote {
		t.Errorf("a challenge that is only counted: %+v", c)
	}
	if c := got["limits"]; c.Result != manage.CheckWarning || !strings.Contains(c.What, "was 0 and 0") {
		t.Errorf("limits of a new room: %+v", c)
	}
	if c := got["installation"]; c.Result != manage.CheckOK {
		t.Errorf("an installation that works: %+v", c)
	}
	if c := got["clock"]; c.What == "" {
		t.Errorf("the clock: %+v", c)
	}
	if _, err := r.s.Manager().ChangeRoom(t.Context(), operator, zone, room.ID, func(r *anteroom.Room) error {
		r.Routes = []anteroom.Route{{Host: "other.example.com"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.origin.Close()
	got = look()
	if c := got["certificate"]; c.Result != manage.CheckError || c.What != "there is no certificate for other.example.com" {
		t.Errorf("another host: %+v", c)
	}
	if c := got["installation"]; c.Result != manage.CheckError || !strings.Contains(c.What, "does not answer") {
		t.Errorf("with the origin gone: %+v", c)
	}
}

func TestCertificatesThatEndFirst(t *testing.T) {
	r := startTLS(t)
	if ends, renewed := r.s.certs.validity("*"); renewed || !ends.Equal(r.s.certs.expires()) {
		t.Errorf("%v, renewed %v; want %v", ends, renewed, r.s.certs.expires())
	}
}
