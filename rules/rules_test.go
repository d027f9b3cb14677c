package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/anteroom/anteroom"
)

// atlas knows a few addresses.
type atlas map[string]Place

func (a atlas) Place(addr netip.Addr) Place { return a[addr.String()] }

// sample is the request that most tests look at.
func sample() *Request {
	return &Request{
		Method: "GET", Version: "HTTP/2.0", Scheme: "https", Host: "shop.example.com",
		Path: "/sale/Shoes.HTML", RawPath: "/sale/%53hoes.HTML", Query: "q=red+apples&size=42&size=43&flag",
		Header: map[string][]string{
			"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) Monitor/7"},
			"Accept":     {"text/html", "application/json"},
			"Cookie":     {"session=abc; sso=1; sso=2", "with%20space=x=y"},
			"X-Data":     {`{"user": {"name": "ann", "groups": ["staff", "ops"], "age": 42}, "n": 1.0}`},
		},
		Client: netip.MustParseAddr("192.0.2.7"), Port: 443, SSL: true,
		Time: time.Unix(1484063800, 123_000_000), Zone: "example.com", VerifiedBot: true,
		Geo: atlas{"192.0.2.7": {Country: "DE", Continent: "EU", City: "Munich", Region: "Bavaria", RegionCode: "BY", PostalCode: "80331",
			Lat: "48.1", Lon: "11.5", Subdivision1: "DE-BY", ASN: 64496, EU: true}},
	}
}

func sampleLists(t testing.TB) *Lists {
	lists, err := NewLists([]anteroom.List{
		{Name: "office", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "198.51.100.4"}, {Value: "192.0.2.0/28"}}},
		{Name: "partners", Kind: anteroom.ListOfASNs, Items: []anteroom.ListItem{{Value: "AS64496"}, {Value: "64500"}}},
		{Name: "shops", Kind: anteroom.ListOfHostnames, Items: []anteroom.ListItem{{Value: "*.example.com"}, {Value: "example.org"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lists
}

// TestExpressions runs testdata/*.txt: each expression against the sample request.
func TestExpressions(t *testing.T) {
	lists := sampleLists(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				e, err := Compile(line, lists)
				switch {
				case err != nil:
					out.WriteString(pointed(line, err))
				case e.Match(sample()):
					fmt.Fprintf(&out, "yes  %s\n", line)
				default:
					fmt.Fprintf(&out, "no   %s\n", line)
				}
			}
			return out.String()
		})
	})
}

func pointed(line string, err error) string {
	faults, ok := err.(*anteroom.Error).Err.(anteroom.Faults)
	if !ok || len(faults) != 1 || faults[0].Path != "expression" || anteroom.KindOf(err) != anteroom.Invalid {
		return fmt.Sprintf("not one fault of the expression: %v\n", err)
	}
	f := faults[0]
	s := fmt.Sprintf("%s\n%s^ %s\n", line, strings.Repeat(" ", f.Column-1), f.Problem)
	if f.Fix != "" {
		s += strings.Repeat(" ", f.Column+1) + f.Fix + "\n"
	}
	return s
}

func TestNetworksOfAList(t *testing.T) {
	lists, err := NewLists([]anteroom.List{
		{Name: "schools", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/24"}, {Value: "2001:db8::/32"}}},
		{Name: "carriers", Kind: anteroom.ListOfASNs, Items: []anteroom.ListItem{{Value: "AS64496"}}},
		{Name: "hosts", Kind: anteroom.ListOfHostnames},
	})
	if err != nil {
		t.Fatal(err)
	}
	geo := atlas{"198.51.100.1": {ASN: 64496}, "198.51.100.2": {ASN: 64497}}
	for _, c := range []struct {
		list, address string
		geo           Geo
		want          bool
	}{
		{"schools", "192.0.2.77", nil, true},
		{"schools", "2001:db8:1::1", nil, true},
		{"schools", "198.51.100.1", geo, false},
		{"carriers", "198.51.100.1", geo, true},
		{"carriers", "198.51.100.2", geo, false},
		{"carriers", "203.0.113.1", geo, false},
		{"carriers", "198.51.100.1", nil, false},
	} {
		n, fault := lists.Networks(c.list)
		if fault != nil {
			t.Fatal(fault)
		}
		if got := n.Has(netip.MustParseAddr(c.address), c.geo); got != c.want {
			t.Errorf("%s in %s: %v", c.address, c.list, got)
		}
	}
	var none *Networks
	if none.Has(netip.MustParseAddr("192.0.2.1"), geo) {
		t.Error("no list has an address")
	}
	for _, name := range []string{"hosts", "other", ""} {
		if _, fault := lists.Networks(name); fault == nil || fault.Fix == "" {
			t.Errorf("%q: %v", name, fault)
		}
	}
	if _, fault := (*Lists)(nil).Networks("schools"); fault == nil {
		t.Error("there is a list without lists")
	}
}
