package queueit

import (
	"net/url"
	"strings"

	"github.com/anteroom/anteroom/gateway/route"
)

const badTarget = "The address does not belong to this waiting room"

// target returns the address to which a visitor goes back, ready for a header: the one that was asked for, or that of the room
// if there is none. It is false if the address is not below a host of the room.
func (e *Event) target(asked string) (string, bool) {
	room, _ := e.Room()
	if room == nil {
		return "", false
	}
	if asked == "" {
		for _, rt := range room.WithDefaults().Routes {
			if rt.Host != "*" {
				return "https://" + rt.Host + rt.Path, true
			}
		}
		return "", false
	}
	if !strings.Contains(asked, "://") { // pages that scripts name may be escaped twice
		if once, err := url.QueryUnescape(asked); err == nil {
			asked = once
		}
	}
	asked, ok := escape(asked)
	if !ok {
		return "", false
	}
	u, err := url.Parse(asked)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
		!strings.HasPrefix(asked, asked[:len(u.Scheme)]+"://"+u.Host) { // what was checked is what stands there
		return "", false
	}
	host, err := route.Host(u.Host)
	if err != nil {
		return "", false
	}
	for _, rt := range room.WithDefaults().Routes {
		if own, err := route.Host(rt.Host); err == nil && rt.Host != "*" && own == host {
			return asked, true
		}
	}
	return "", false
}

// escape returns an address with its blanks, backslashes, quotes and foreign letters escaped. It is false for control characters,
// which browsers skip or read as the end of a header.
func escape(s string) (string, bool) {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c < ' ' || c == 0x7f:
			return "", false
		case c == ' ' || c >= 0x80 || strings.IndexByte(`\"<>^{|}`+"`", c) >= 0:
			out.WriteByte('%')
			out.WriteByte(digits[c>>4])
			out.WriteByte(digits[c&15])
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}
