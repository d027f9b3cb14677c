package route

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func room(name string, routes ...string) anteroom.Room {
	r := anteroom.Room{Name: name}
	for _, s := range routes {
		host, path, _ := strings.Cut(s, "/")
		r.Routes = append(r.Routes, anteroom.Route{Host: host, Path: "/" + path})
	}
	return r
}

func mustTable(t testing.TB, cfg Config) *Table {
	t.Helper()
	tab, err := NewTable(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// found names the outcome of a lookup: the room, "-" for none, or the error.
func found(tab *Table, host, target string) string {
	m, err := tab.Lookup(host, target)
	switch {
	case errors.Is(err, ErrHost):
		return "host"
	case errors.Is(err, ErrUnknownHost):
		return "unknown"
	case errors.Is(err, ErrTarget):
		return "target"
	case m == nil:
		return "-"
	}
	return m.Room.Name
}

func TestTheMostSpecificRoomWins(t *testing.T) {
	tab := mustTable(t, Config{Rooms: []anteroom.Room{
		room("whole", "shop.example.com/"),
		room("checkout", "shop.example.com/checkout/"),
		room("pay", "shop.example.com/checkout/pay"),
		room("Sale", "www.example.com/Sale"),
		room("sale", "www.example.com/sale"),
		room("everywhere", "*/"),
		room("api", "*/api"),
		room("deep", "*/checkout/pay/card/number"),
		room("cafe", "cafe.example/caf\u00e9"),
		room("caps", "CAPS.example./X"),
	}})
	for _, c := range []struct{ host, target, want string }{
		{"shop.example.com", "/", "whole"},
		{"shop.example.com", "/checkouts", "whole"},
		{"shop.example.com", "/checkout", "checkout"},
		{"shop.example.com", "/checkout/", "checkout"},
		{"shop.example.com", "/checkout/pay/card", "pay"},
		{"SHOP.example.com.:8080", "/checkout/pay", "pay"},
		{"shop.example.com", "/api", "whole"},                            // the host's rooms come first
		{"shop.example.com", "/checkout/pay/card/number", "pay"},         // however long the other path
		{"shop.example.com", "/checkout/pay/..;/x", "pay"},               // any reading, the longest route
		{"shop.example.com", "/x/..%2f/checkout%252fpay", "pay"},         // also when only the last reading has it
		{"www.example.com", "/Sale/1", "Sale"},                           // both are covered: case decides
		{"www.example.com", "/sale/1", "sale"},                           //
		{"www.example.com", "/SALE/1", "Sale"},                           // and otherwise the first
		{"www.example.com", "/x", "everywhere"},                          //
		{"other.example.com", "/checkout", "everywhere"},                 //
		{"other.example.com", "/API/v1", "api"},                          //
		{"10.0.0.1:80", "/apis", "everywhere"},                           //
		{"[::1]:80", "/api", "api"},                                      //
		{"cafe.example", "/caf%C3%A9/x", "cafe"},                         //
		{"cafe.example", "/CAF%c3%89", "cafe"},                           //
		{"caps.example", "/x", "caps"},                                   //
		{"caps.example", "/y", "everywhere"},                             //
		{"", "/", "host"}, {"a,b", "/", "host"}, {"x", "/%00", "target"}, // refusals come before rooms
	} {
		if got := found(tab, c.host, c.target); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.host, c.target, got, c.want)
		}
	}
}

func TestUnknownHostsFailClosed(t *testing.T) {
	rooms := []anteroom.Room{room("shop", "shop.example.com/x")}
	closed := mustTable(t, Config{Rooms: rooms, Hosts: []string{"Static.example.com"}})
	open := mustTable(t, Config{Rooms: rooms, Hosts: []string{"*"}, OpenHosts: true})
	named := mustTable(t, Config{Rooms: rooms, Hosts: []string{"*", "static.example.com"}})
	mixed := mustTable(t, Config{Rooms: append(rooms, room("drop", "*/drop")), Hosts: []string{"*"}})
	star := mustTable(t, Config{Rooms: []anteroom.Room{room("star", "*/x")}})
	for _, c := range []struct {
		tab                *Table
		host, target, want string
	}{
		{closed, "shop.example.com", "/x", "shop"},
		{closed, "shop.example.com", "/y", "-"},
		{closed, "static.example.com", "/x", "-"},
		{closed, "other.example.com", "/x", "unknown"},
		{closed, "other.example.com", "/%00", "unknown"},
		{closed, "example.com", "/x", "unknown"},
		{closed, "127.0.0.1", "/x", "unknown"},
		{closed, "static.example.com", "/%00", "target"},
		{open, "other.example.com", "/x", "-"},
		{open, "shop.example.com", "/x", "shop"},
		{open, "", "/x", "host"},
		{named, "other.example.com", "/x", "unknown"},
		{named, "other.example.com", "/a/../x", "unknown"},
		{named, "127.0.0.1", "/", "unknown"},
		{named, "shop.example.com", "/y", "-"},
		{named, "static.example.com", "/x", "-"},
		{mixed, "other.example.com", "/drop", "drop"},
		{mixed, "other.example.com", "/a/../drop", "drop"},
		{mixed, "other.example.com", "/x", "unknown"},
		{star, "other.example.com", "/x", "star"},
		{star, "other.example.com", "/y", "-"},
		{&Table{}, "shop.example.com", "/x", "unknown"},
	} {
		if got := found(c.tab, c.host, c.target); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.host, c.target, got, c.want)
		}
	}
}

// Caddy's host matcher became case-sensitive above 100 hosts (CVE-2026-27588).
func TestTheNumberOfRoomsChangesNothing(t *testing.T) {
	for _, n := range []int{1, 99, 101, 10_000} {
		rooms := []anteroom.Room{room("the", "Shop.example.com/tickets")}
		for i := 1; i < n; i++ {
			host := fmt.Sprintf("h%d.example.net", i)
			if i%2 == 0 {
				host = "shop.example.com"
			}
			rooms = append(rooms, room(fmt.Sprint("r", i), fmt.Sprintf("%s/p%d", host, i)))
		}
		tab := mustTable(t, Config{Rooms: rooms, Hosts: []string{"free.example"}})
		for _, c := range []struct{ host, target, want string }{
			{"shop.example.com", "/tickets", "the"}, {"SHOP.EXAMPLE.com", "/TICKETS/x", "the"}, {"shop.example.com.:1", "/x/..;/tickets", "the"},
			{"shop.example.com", "/", "-"}, {"free.example", "/tickets", "-"}, {"unknown.example", "/", "unknown"},
		} {
			if got := found(tab, c.host, c.target); got != c.want {
				t.Errorf("%d rooms: %s %s: %s, want %s", n, c.host, c.target, got, c.want)
			}
		}
		if len(tab.Rooms()) != n || tab.Rooms()[n-1].Index != n-1 {
			t.Errorf("%d rooms: the table has %d", n, len(tab.Rooms()))
		}
	}
}

func TestPlainPathsCostNoAllocation(t *testing.T) {
	tab := mustTable(t, Config{Rooms: []anteroom.Room{room("shop", "shop.example.com/shop/checkout"), room("all", "*/")}})
	for _, c := range []struct{ host, target string }{
		{"shop.example.com", "/shop/checkout/a/b?x=1"}, {"shop.example.com:8080", "/Shop/Checkout/ABC"}, {"other.example.com.", "/.well-known/x"},
		{"127.0.0.1:8080", "/"}, {"[::1]:8080", "/"}, {"shop.example.com", "/" + strings.Repeat("a", 4000)},
	} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := tab.Lookup(c.host, c.target); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s %.40s: %v allocations", c.host, c.target, n)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		var rooms []anteroom.Room
		for i := range n {
			rooms = append(rooms, room(fmt.Sprint("r", i), fmt.Sprintf("shop%d.example.com/shop/checkout", i)))
		}
		tab := mustTable(b, Config{Rooms: rooms})
		for _, c := range []struct{ name, target string }{
			{"plain", "/shop/checkout/cart/items?sort=price"},
			{"free", "/static/img/logo.png"},
			{"escaped", "/shop/caf%C3%A9"},
			{"hostile", "/" + strings.Repeat("x;y/%2e%2e/", 700)},
		} {
			b.Run(fmt.Sprintf("rooms=%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					tab.Lookup("shop0.example.com", c.target)
				}
			})
		}
	}
}
