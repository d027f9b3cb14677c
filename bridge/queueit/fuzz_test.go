package queueit

import (
	"net/url"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// Whatever is asked for, visitors are sent to a host of the room, in one line.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"", page, "https://evil.example/", `https://evil.example\@shop.example.com/`, "https%3A%2F%2Fshop.example.com%2F", "https://shop.example.com:1/\r\na", "//shop.example.com"} {
		f.Add(seed)
	}
	e := Event{Room: func() (*anteroom.Room, Live) { return &sale, nil }}
	f.Fuzz(func(t *testing.T, asked string) {
		to, ok := e.target(asked)
		if !ok {
			return
		}
		to = withToken(to, "T")
		u, err := url.Parse(to)
		if err != nil || !strings.EqualFold(u.Hostname(), "shop.example.com") || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || u.Query().Get(tokenParameter) == "" && !strings.Contains(u.RawQuery, ";") {
			t.Errorf("%q leads to %q: %v", asked, to, err)
		}
		if strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
			t.Errorf("%q gives the header %q", asked, to)
		}
	})
}

func FuzzInvitation(f *testing.F) {
	f.Add("e30..", "e30")
	f.Add(seal(`{"typ":"QT1","enc":"AES256","ti":"a","c":"b"}`, `{}`, "a", secret), "")
	f.Fuzz(func(t *testing.T, text, body string) {
		readInvitation(text, secret)
		if i, err := readInvitation(hashed(text+"."+body, secret), secret); err == nil && (i.ID == "" || i.Customer == "") {
			t.Errorf("%q has no id", text)
		}
	})
}
