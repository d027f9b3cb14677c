package geo

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
)

type m = mmdbtype.Map

func text(s string) mmdbtype.String { return mmdbtype.String(s) }

// written returns a database with the records by network.
func written(t testing.TB, o mmdbwriter.Options, records map[string]m) []byte {
	t.Helper()
	w, err := mmdbwriter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for network, rec := range records {
		_, ipnet, err := net.ParseCIDR(network)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Insert(ipnet, rec); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func save(t testing.TB, name string, data []byte) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func country(code, continent string, eu bool) m {
	return m{"country": m{"iso_code": text(code), "is_in_european_union": mmdbtype.Bool(eu)}, "continent": m{"code": text(continent)}}
}

var cityRecords = map[string]m{
	"81.2.69.0/24": {
		"city":      m{"names": m{"en": text("London"), "de": text("London")}},
		"continent": m{"code": text("EU")},
		"country":   m{"iso_code": text("GB")},
		"location":  m{"latitude": mmdbtype.Float64(51.5142), "longitude": mmdbtype.Float64(-0.0931), "metro_code": mmdbtype.Uint16(501)},
		"postal":    m{"code": text("EC1A")},
		"subdivisions": mmdbtype.Slice{
			m{"iso_code": text("ENG"), "names": m{"en": text("England")}},
			m{"iso_code": text("LND"), "names": m{"en": text("City of London")}},
		},
	},
	"2a02:8100::/32": country("DE", "EU", true),
	"81.2.70.0/24":   country("DE", "EU", true),
	"81.2.71.0/24":   {"registered_country": m{"iso_code": text("US")}},
}

func cityFile(t testing.TB) string {
	return save(t, "city.mmdb", written(t, mmdbwriter.Options{DatabaseType: "GeoLite2-City"}, cityRecords))
}

func asnFile(t testing.TB) string {
	return save(t, "asn.mmdb", written(t, mmdbwriter.Options{DatabaseType: "GeoLite2-ASN", RecordSize: 24}, map[string]m{
		"81.2.69.0/25": {"autonomous_system_number": mmdbtype.Uint32(20712)},
		"81.2.80.0/24": {"autonomous_system_number": mmdbtype.Uint32(4_200_000_000)},
	}))
}

func opened(t testing.TB, files ...string) *Databases {
	t.Helper()
	d, err := Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPlaces(t *testing.T) {
	d := opened(t, cityFile(t), asnFile(t))
	london := rules.Place{Country: "GB", Continent: "EU", City: "London", Region: "England", RegionCode: "ENG", PostalCode: "EC1A",
		MetroCode: "501", Lat: "51.51420", Lon: "-0.09310", Subdivision1: "GB-ENG", Subdivision2: "GB-LND"}
	known := london
	known.ASN = 20712
	germany := rules.Place{Country: "DE", Continent: "EU", EU: true}
	for addr, want := range map[string]rules.Place{
		"81.2.69.1":          known,
		"::ffff:81.2.69.1":   known,
		"81.2.69.200":        london,
		"81.2.70.1":          germany,
		"2a02:8100:1::1":     germany,
		"fe80::1%eth0":       {},
		"81.2.71.1":          {}, // where it is registered is not where it is
		"81.2.80.1":          {ASN: 4_200_000_000},
		"192.0.2.1":          {},
		"127.0.0.1":          {},
		"2001:db8::1":        {},
		"255.255.255.255":    {},
		"ffff:ffff:ffff::ff": {},
	} {
		for range 2 { // decoded, and as it was remembered
			if got := d.Place(netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s: %+v, want %+v", addr, got, want)
			}
		}
	}
	if got := d.Place(netip.Addr{}); got != (rules.Place{}) {
		t.Errorf("no address: %+v", got)
	}
	var none *Databases
	if got := none.Place(netip.MustParseAddr("81.2.69.1")); got != (rules.Place{}) {
		t.Errorf("no files: %+v", got)
	}
}

// TestFilesFillEachOther: what one leaves out comes from the next, and what they contradict
// each other in does not mix.
func TestFilesFillEachOther(t *testing.T) {
	coarse := save(t, "country.mmdb", written(t, mmdbwriter.Options{DatabaseType: "DBIP-Country-Lite"}, map[string]m{
		"81.2.69.0/24": country("GB", "EU", false), "81.2.70.0/24": country("FR", "EU", true)}))
	four := save(t, "four.mmdb", written(t, mmdbwriter.Options{DatabaseType: "My-Country", IPVersion: 4, RecordSize: 32}, map[string]m{
		"192.0.0.0/9": country("CH", "EU", false), "81.2.70.0/24": country("AT", "EU", true)}))
	d := opened(t, asnFile(t), coarse, cityFile(t), four)
	for addr, want := range map[string]string{"81.2.69.1": "GB London 20712", "81.2.70.1": "FR  0", "192.1.2.1": "CH  0", "2a02:8100::1": "DE  0"} {
		p := d.Place(netip.MustParseAddr(addr))
		if got := strings.Join([]string{p.Country, p.City, uitoa(p.ASN)}, " "); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

func uitoa(n uint32) string {
	if n == 20712 {
		return "20712"
	}
	return "0"
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	good := written(t, mmdbwriter.Options{DatabaseType: "GeoLite2-City"}, cityRecords)
	gzip := append([]byte{0x1f, 0x8b}, good...)
	flat := written(t, mmdbwriter.Options{DatabaseType: "ipinfo country"}, map[string]m{"81.2.69.0/24": {"country": text("GB")}})
	other := written(t, mmdbwriter.Options{DatabaseType: "GeoIP2-Anonymous-IP"}, map[string]m{"81.2.69.0/24": {"is_anonymous": mmdbtype.Bool(true)}})
	broken := bytes.Clone(good)
	// A type that does not exist, in the middle of the data.
	i := bytes.Index(broken, []byte("England")) - 1
	broken[i] = 0xff
	dir := t.TempDir()
	huge := save(t, "huge.mmdb", nil)
	if err := os.Truncate(huge, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, want string }{
		{"missing", filepath.Join(dir, "none.mmdb"), "cannot be read: no such file or directory (check the path"},
		{"a directory", dir, "is not a plain file"},
		{"empty", save(t, "empty.mmdb", nil), "is not a MaxMind DB file"},
		{"text", save(t, "text.mmdb", []byte("hello")), "is not a MaxMind DB file"},
		{"cut short", save(t, "cut.mmdb", good[:len(good)/2]), "is not a MaxMind DB file, or only a part of one"},
		{"its beginning is missing", save(t, "tail.mmdb", good[len(good)/3:]), ""},
		{"packed", save(t, "packed.mmdb", gzip), ""},
		{"a broken record", save(t, "broken.mmdb", broken), "is damaged"},
		{"of another kind", save(t, "other.mmdb", other), `is a database of type "GeoIP2-Anonymous-IP", and a country, city or ASN database is needed`},
		{"in another layout", save(t, "flat.mmdb", flat), "has another layout than MaxMind's"},
		{"too large", huge, "at most 536870912 are read"},
	} {
		d, err := Open([]string{cityFile(t), c.file}, nil)
		if err == nil || d != nil || anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v, %v", c.name, d, err)
			continue
		}
		if !strings.Contains(err.Error(), "geoip: "+c.file+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.want)
		}
	}
	if _, err := Open(make([]string, maxFiles+1), nil); err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Errorf("too many: %v", err)
	}
}

// TestReopening: a file that has changed is read anew, however it was changed, the others are
// not, and what was open before stays as it was.
func TestReopening(t *testing.T) {
	city, asn := cityFile(t), asnFile(t)
	before := opened(t, city, asn)
	moved := written(t, mmdbwriter.Options{DatabaseType: "GeoLite2-City"}, map[string]m{"81.2.69.0/24": country("IE", "EU", true)})
	save(t, city, moved) // in place: the worst way
	after, err := Open([]string{city, asn}, before)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr("81.2.69.1")
	if got := before.Place(addr).Country; got != "GB" {
		t.Errorf("what was open says %q", got)
	}
	if p := after.Place(addr); p.Country != "IE" || p.City != "" || p.ASN != 20712 {
		t.Errorf("what was opened anew says %+v", p)
	}
	if after.all[0] == before.all[0] || after.all[1] != before.all[1] {
		t.Error("the file that changed is read, and no other")
	}
	if again, err := Open([]string{asn}, after); err != nil || again.all[0] != before.all[1] {
		t.Errorf("a file fewer: %v", err)
	}
	if none, err := Open(nil, after); err != nil || none.Place(addr) != (rules.Place{}) {
		t.Errorf("no file: %v", err)
	}
}

func TestPlaceCostsNoAllocation(t *testing.T) {
	d := opened(t, cityFile(t), asnFile(t))
	addr, nowhere := netip.MustParseAddr("81.2.69.1"), netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(100, func() { d.Place(addr); d.Place(nowhere) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzOpen: whatever is in a file, opening and asking end, and do not panic.
func FuzzOpen(f *testing.F) {
	f.Add(written(f, mmdbwriter.Options{DatabaseType: "GeoLite2-City"}, cityRecords))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		d, err := Open([]string{save(t, "x.mmdb", data)}, nil)
		if err != nil {
			return
		}
		for _, a := range []string{"81.2.69.1", "2a02:8100::1", "0.0.0.0", "ffff::"} {
			d.Place(netip.MustParseAddr(a))
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	d := opened(b, cityFile(b), asnFile(b))
	addr := netip.MustParseAddr("81.2.69.1")
	b.ReportAllocs()
	for b.Loop() {
		d.Place(addr)
	}
}
