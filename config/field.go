package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// field is one key, as the tags of its struct field describe it:
//
//	key       its name in the file
//	doc       one or two sentences for the reference page
//	default   as it would be written in the file, lists with commas
//	enum      the values allowed, with commas; "languages" are those of a room
//	min, max  bounds, for numbers and durations
//	required  the key must be given
//	file      the value is a path, relative to the file that it stands in
//	minutes   a bare number is minutes, as in the published API
type field struct {
	key, doc string
	fallback string // the default; meaningless unless hasFallback
	min, max string
	enum     []string

	hasFallback, required, file, minutes bool

	index []int // for reflect.Value.FieldByIndex
	typ   reflect.Type
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// fieldsOf returns the keys of a struct, those of embedded structs first.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for sf := range t.Fields() {
		if sf.Anonymous {
			for _, f := range fieldsOf(sf.Type) {
				f.index = append(slices.Clone(sf.Index), f.index...)
				out = append(out, f)
			}
			continue
		}
		key, tagged := sf.Tag.Lookup("key")
		if !tagged {
			continue
		}
		f := field{key: key, doc: sf.Tag.Get("doc"), min: sf.Tag.Get("min"), max: sf.Tag.Get("max"), index: sf.Index, typ: sf.Type}
		f.fallback, f.hasFallback = sf.Tag.Lookup("default")
		f.required = sf.Tag.Get("required") != ""
		f.file = sf.Tag.Get("file") != ""
		f.minutes = sf.Tag.Get("minutes") != ""
		if enum := sf.Tag.Get("enum"); enum == "languages" {
			f.enum = anteroom.Languages
		} else if enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		out = append(out, f)
	}
	return out
}

func (f field) isSection() bool { return f.typ.Kind() == reflect.Struct && f.typ != prefixType }
func (f field) isList() bool    { return f.typ.Kind() == reflect.Slice }
func (f field) isSections() bool {
	return f.isList() && f.typ.Elem().Kind() == reflect.Struct && f.typ.Elem() != prefixType
}

// fill puts the defaults into a struct and the sections in it.
func fill(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at := v.FieldByIndex(f.index)
		if f.isSection() {
			fill(at)
		} else if f.hasFallback {
			f.set(at, f.fallback)
		}
	}
}

// wrong is what is wrong with a value and what to write instead.
type wrong struct{ problem, fix string }

// set puts a value, as text, into v, or says why not. The members of a list are separated
// by commas.
func (f field) set(v reflect.Value, text string) *wrong {
	if !f.isList() {
		return f.setOne(v, text)
	}
	list := reflect.MakeSlice(f.typ, 0, 1)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		one := reflect.New(f.typ.Elem()).Elem()
		if w := f.setOne(one, part); w != nil {
			return w
		}
		list = reflect.Append(list, one)
	}
	v.Set(list)
	return nil
}

// setOne is set for a single value or for one member of a list.
func (f field) setOne(v reflect.Value, text string) *wrong {
	if f.enum != nil && !slices.Contains(f.enum, text) {
		return &wrong{fmt.Sprintf("%s is not known", quote(text)), "one of " + strings.Join(f.enum, ", ")}
	}
	switch v.Type() {
	case durationType:
		return f.setDuration(v, text)
	case prefixType:
		p, err := netip.ParsePrefix(text)
		if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return &wrong{fmt.Sprintf("%s is not a network", quote(text)), "an address or CIDR, like 10.0.0.0/8 or 2001:db8::1"}
		}
		if p != p.Masked() {
			return &wrong{fmt.Sprintf("%s has bits beyond its length", quote(text)), "write " + p.Masked().String()}
		}
		v.Set(reflect.ValueOf(p))
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || len(text) == 1 {
			return &wrong{fmt.Sprintf("%s is not true or false", quote(text)), "write true or false"}
		}
		v.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return &wrong{fmt.Sprintf("%s is not a whole number", quote(text)), f.span()}
		}
		if least, err := strconv.Atoi(f.min); err == nil && n < least {
			return &wrong{fmt.Sprintf("%d is too small", n), f.span()}
		}
		if most, err := strconv.Atoi(f.max); err == nil && n > most {
			return &wrong{fmt.Sprintf("%d is too large", n), f.span()}
		}
		v.SetInt(int64(n))
	default:
		v.SetString(text)
	}
	return nil
}

func (f field) setDuration(v reflect.Value, text string) *wrong {
	if f.minutes && text != "" && strings.Trim(text, "0123456789") == "" {
		text += "m"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return &wrong{fmt.Sprintf("%s is not a duration", quote(text)), "a number with a unit: 500ms, 30s, 5m, 2h"}
	}
	least, _ := time.ParseDuration(f.min)
	most, err := time.ParseDuration(f.max)
	if d < least || err == nil && d > most {
		return &wrong{fmt.Sprintf("%s is out of range", short(d)), f.span()}
	}
	v.SetInt(int64(d))
	return nil
}

// span says the bounds; empty when there are none.
func (f field) span() string {
	if f.max == "" {
		return ""
	}
	return f.min + " to " + f.max
}

// short writes a duration as people do: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quote shows a value in an error without letting it fill the screen.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		return strconv.Quote(string(r[:60])) + "…"
	}
	return strconv.Quote(s)
}

// didYouMean returns the known word nearest to word, or "".
func didYouMean(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance, for words of up to 64 bytes; longer ones are far.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
