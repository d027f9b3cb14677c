// Package geo locates addresses with MaxMind DB files that the operator provides: country, city or ASN databases by
// MaxMind or others in the same layout.
//
// A file is read into memory as a whole and checked when it is opened. It is not mapped, because replacing a mapped
// file in place would crash the process.
package geo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
)

// Bounds of files.
const (
	// maxFiles is how many files are used together.
	maxFiles = 8
	// maxFileBytes is the size of one.
	maxFileBytes = 512 << 20
)

// places is how many records of a file are kept decoded. Many networks share one.
const places = 4096

// Databases are open files. They do not change; safe for concurrent use.
type Databases struct {
	all []*database
}

var _ rules.Geo = (*Databases)(nil)

// database is one file in memory.
type database struct {
	name   string
	file   os.FileInfo
	reader *maxminddb.Reader
	// recent are decoded records, each at the place that its offset gives.
	recent []atomic.Pointer[decoded]
}

type decoded struct {
	offset uintptr
	place  rules.Place
}

// Open reads the files and checks them. Of those that old has open and that have not changed
// since, it takes the copy in memory; old may be nil. Errors are of kind Invalid, name the
// file and say what to do.
func Open(files []string, old *Databases) (*Databases, error) {
	if len(files) > maxFiles {
		return nil, anteroom.Errorf(anteroom.Invalid, "geoip: has %d files, and at most %d are used", len(files), maxFiles)
	}
	d := &Databases{}
	for _, name := range files {
		one, err := open(name, old)
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Invalid, "geoip: %s: %w", name, err)
		}
		d.all = append(d.all, one)
	}
	return d, nil
}

func open(name string, old *Databases) (*database, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w (check the path and its permissions)", cause(err))
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", cause(err))
	}
	if old != nil {
		for _, one := range old.all {
			if one.name == name && os.SameFile(one.file, info) && one.file.Size() == info.Size() && one.file.ModTime().Equal(info.ModTime()) {
				return one, nil
			}
		}
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a plain file")
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("has %d bytes, and at most %d are read (check that it is the right file)", info.Size(), maxFileBytes)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, fmt.Errorf("cannot be read: %w (is it being written? put a finished file in its place)", err)
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("is not a MaxMind DB file, or only a part of one: %w (unpack it, or download it again)", err)
	}
	if kind := reader.Metadata.DatabaseType; !isUseful(kind) {
		return nil, fmt.Errorf("is a database of type %.60q, and a country, city or ASN database is needed, like GeoLite2-Country", kind)
	}
	if err := check(reader); err != nil {
		if _, ok := errors.AsType[maxminddb.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("has another layout than MaxMind's: %w (use a GeoLite2 or GeoIP2 database, or one that says it is compatible)", err)
		}
		return nil, fmt.Errorf("is damaged: %w (download it again)", err)
	}
	return &database{name: name, file: info, reader: reader, recent: make([]atomic.Pointer[decoded], places)}, nil
}

// cause is an error without the name of the file, which the message has.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// isUseful reports whether a database of the type can have something that we look for.
func isUseful(kind string) bool {
	kind = strings.ToLower(kind)
	return slices.ContainsFunc([]string{"country", "city", "enterprise", "asn", "isp"}, func(w string) bool { return strings.Contains(kind, w) })
}

// check decodes every record that an address leads to. Reader.Verify looks at more, and at
// what other makers' files are lax in and nobody reads.
func check(r *maxminddb.Reader) error {
	seen := make(map[uintptr]struct{})
	leaves := uint(0)
	for result := range r.Networks(maxminddb.IncludeNetworksWithoutData()) {
		// A tree has one leaf more than nodes. A graph that only looks like one may have more
		// ways through it than there are addresses.
		if leaves++; leaves > 2*r.Metadata.NodeCount+1 {
			return errors.New("its search tree is not valid")
		}
		if err := result.Err(); err != nil {
			return err
		}
		if !result.Found() {
			continue
		}
		if _, ok := seen[result.Offset()]; ok {
			continue
		}
		seen[result.Offset()] = struct{}{}
		var rec record
		if err := result.Decode(&rec); err != nil {
			return err
		}
	}
	return nil
}

// record is what is read of a record of any kind of database.
type record struct {
	City struct {
		Names names `maxminddb:"names"`
	} `maxminddb:"city"`
	Continent struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"continent"`
	Country struct {
		ISOCode string `maxminddb:"iso_code"`
		EU      bool   `maxminddb:"is_in_european_union"`
	} `maxminddb:"country"`
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
		MetroCode uint     `maxminddb:"metro_code"`
	} `maxminddb:"location"`
	Postal struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"postal"`
	Subdivisions []struct {
		ISOCode string `maxminddb:"iso_code"`
		Names   names  `maxminddb:"names"`
	} `maxminddb:"subdivisions"`
	ASN    uint32 `maxminddb:"autonomous_system_number"`
	Traits struct {
		ASN uint32 `maxminddb:"autonomous_system_number"`
	} `maxminddb:"traits"`
}

type names struct {
	English string `maxminddb:"en"`
}

// Place returns what the files say about an address; where they say nothing, the members are
// empty. A file fills in what those before it have left out.
func (d *Databases) Place(a netip.Addr) rules.Place {
	var p rules.Place
	if d == nil || !a.IsValid() {
		return p
	}
	a = a.Unmap().WithZone("")
	for i, db := range d.all {
		one := db.place(a)
		switch {
		case one == nil:
		case i == 0:
			p = *one
		default:
			fill(&p, one)
		}
	}
	return p
}

// place returns the record of an address, or nil. A record that was decoded before costs no
// allocation.
func (db *database) place(a netip.Addr) *rules.Place {
	if a.Is6() && db.reader.Metadata.IPVersion == 4 {
		return nil
	}
	result := db.reader.Lookup(a)
	if !result.Found() {
		return nil
	}
	offset := result.Offset()
	slot := &db.recent[(offset*0x9e3779b1>>7)%places]
	if d := slot.Load(); d != nil && d.offset == offset {
		return &d.place
	}
	var rec record
	if result.Decode(&rec) != nil {
		return nil // not after check
	}
	d := &decoded{offset: offset, place: rec.place()}
	slot.Store(d)
	return &d.place
}

func (r *record) place() rules.Place {
	p := rules.Place{
		Country: r.Country.ISOCode, Continent: r.Continent.Code, City: r.City.Names.English, EU: r.Country.EU,
		PostalCode: r.Postal.Code, Lat: degrees(r.Location.Latitude), Lon: degrees(r.Location.Longitude),
		ASN: max(r.ASN, r.Traits.ASN),
	}
	if m := r.Location.MetroCode; m > 0 {
		p.MetroCode = strconv.FormatUint(uint64(m), 10)
	}
	if len(r.Subdivisions) > 0 {
		p.Region, p.RegionCode = r.Subdivisions[0].Names.English, r.Subdivisions[0].ISOCode
		p.Subdivision1 = r.iso3166(0)
	}
	if len(r.Subdivisions) > 1 {
		p.Subdivision2 = r.iso3166(1)
	}
	return p
}

// iso3166 is the code of a subdivision with its country, as in ISO 3166-2: "GB-ENG".
func (r *record) iso3166(i int) string {
	if r.Country.ISOCode == "" || r.Subdivisions[i].ISOCode == "" {
		return ""
	}
	return r.Country.ISOCode + "-" + r.Subdivisions[i].ISOCode
}

// degrees writes a coordinate with the five digits after the point that the Rules language has.
func degrees(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', 5, 64)
}

// fill puts into p what it lacks. What belongs together comes from one file: a city of one
// and a country of another may contradict each other.
func fill(p, from *rules.Place) {
	p.ASN = cmp.Or(p.ASN, from.ASN)
	bare := p.Country == "" && p.Continent == "" && p.Lat == ""
	finer := p.Country == from.Country && p.City == "" && p.Region == "" && p.Lat == ""
	if bare || finer {
		asn := p.ASN
		*p = *from
		p.ASN = asn
	}
}
