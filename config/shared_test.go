package config

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
)

// A node without sites serves what another's file says, pages and all.
func TestSharedIsTheSameElsewhere(t *testing.T) {
	file := []byte(`
data: /var/lib/here
cookie_name: ticket
sites: [{hosts: "*", origins: "http://f"}]
rooms: [{name: a, host: "*", total_active_users: 1, new_users_per_minute: 2, custom_page_file: p.html, events: [{name: sale, event_start_time: "2026-11-27T10:00:00Z", event_end_time: "2026-11-27T11:00:00Z", queueing_method: random}]}]
`)
	full, err := Load(LoadOptions{File: "/etc/c.yaml", Open: only("/etc/c.yaml", file, "/etc/p.html", []byte("a page: {{waitTime}}"))})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Load(LoadOptions{File: "/etc/c.yaml", Open: only("/etc/c.yaml", []byte("cluster: {join: [10.0.0.1:7222], secret_file: s}"), "/etc/s", bytes.Repeat([]byte("s"), 40))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := bare.WithShared(full.Shared(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, full.Shared())
	}
	if !reflect.DeepEqual(got.Rooms, full.Rooms) || !reflect.DeepEqual(got.Sites, full.Sites) || got.CookieName != "ticket" {
		t.Errorf("got  %+v\nwant %+v", got.Rooms, full.Rooms)
	}
	if got.Data != bare.Data || len(got.Cluster.Join) != 1 {
		t.Error("what is the node's own has changed")
	}
	if text := got.Effective(); !strings.Contains(text, "origins: [\"http://f\"]") || !strings.Contains(text, "cookie_name: \"ticket\" # from the cluster") || !strings.Contains(text, "queueing_method: \"random\"") {
		t.Errorf("what it uses is not shown:\n%s", text)
	}
	if text := string(full.Shared()); strings.Contains(text, "/var/lib") || strings.Contains(text, "#") {
		t.Errorf("shared tells what is this machine's:\n%s", text)
	}
}

func TestSharedWithFaults(t *testing.T) {
	bare, err := Load(LoadOptions{File: "/etc/c.yaml", Open: only("/etc/c.yaml", []byte("sites: [{hosts: '*', origins: 'http://f'}]"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "rooms: [{name: a}]", "listen: x", "sites: [{hosts: '*', origins: 'http://f'}]\nrooms: 1"} {
		if _, err := bare.WithShared([]byte(text), nil); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A node of an older release reads it strictly and need not know what nobody has set.
func TestSharedHasNoDefaults(t *testing.T) {
	file := []byte("sites: [{hosts: '*', origins: 'http://f'}]\nrooms: [{name: a, host: '*', total_active_users: 1, new_users_per_minute: 2}]\n")
	full, err := Load(LoadOptions{File: "/etc/c.yaml", Open: only("/etc/c.yaml", file)})
	if err != nil {
		t.Fatal(err)
	}
	want := `sites:
  - hosts: ["*"]
    origins: ["http://f"]
rooms:
  - name: "a"
    host: "*"
    total_active_users: 1
    new_users_per_minute: 2
`
	if got := string(full.Shared()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What flags say is shared as what a file says.
func TestSharedOfFlags(t *testing.T) {
	c, err := Load(LoadOptions{Flags: map[string]string{"origin": "http://o:1", "total-active-users": "7"}})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Load(LoadOptions{File: "/etc/c.yaml", Open: only("/etc/c.yaml", []byte("cluster: {join: [10.0.0.1:7222], secret_file: s}"), "/etc/s", bytes.Repeat([]byte("s"), 40))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := bare.WithShared(c.Shared(), nil)
	if err != nil || !reflect.DeepEqual(got.Rooms, c.Rooms) || !reflect.DeepEqual(got.Sites, c.Sites) {
		t.Errorf("%v\n%s", err, c.Shared())
	}
}

// A configuration is shown as it was read, whatever has become of its files.
func TestShownAsRead(t *testing.T) {
	gone := false
	read := only("/etc/c.yaml", []byte("sites: [{hosts: [a], origins: [http://f]}]"), "/etc/listen", []byte(":81"))
	c, err := Load(LoadOptions{File: "/etc/c.yaml", Env: []string{"ANTEROOM_LISTEN_FILE=/etc/listen"}, Open: func(name string) (io.ReadCloser, error) {
		if gone {
			t.Errorf("%s was opened again", name)
		}
		return read(name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	gone = true
	if all, some := c.Effective(), string(c.Shared()); !strings.Contains(all, "http://f") || !strings.Contains(all, ":81") || !strings.Contains(some, "http://f") {
		t.Errorf("%s\n%s", all, some)
	}
}
