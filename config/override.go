package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
)

// Flag describes one flag and the variable that does the same.
type Flag struct {
	Name    string // without dashes: "tls-acme-email"
	Env     string // "ANTEROOM_TLS_ACME_EMAIL"
	Key     string // in the file: "tls.acme.email"; empty for those of quick
	Default string
	Usage   string
	Bool    bool // may stand without a value
}

// Flags lists the flags that [LoadOptions].Flags may have: first those of quick, then
// one for every key of the file that is not in a list of sections.
func Flags() []Flag {
	var out []Flag
	for _, l := range allLeaves() {
		f := Flag{Name: l.flag(), Env: l.env(), Default: l.Default, Usage: l.Doc, Bool: l.Type.Kind() == reflect.Bool}
		if !l.quick {
			f.Key = l.path
		}
		out = append(out, f)
	}
	return out
}

// leaf is a key that one text can set.
type leaf struct {
	field.Field // its index leads from the top struct
	path        string
	quick       bool
}

func (l leaf) env() string {
	return "ANTEROOM_" + strings.ToUpper(strings.ReplaceAll(l.path, ".", "_"))
}
func (l leaf) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(l.path) }

func allLeaves() []leaf {
	var out []leaf
	for _, f := range quickFields() {
		out = append(out, leaf{Field: f, path: f.Key, quick: true})
	}
	return append(out, leaves(reflect.TypeFor[document](), "", nil)...)
}

func leaves(t reflect.Type, path string, index []int) []leaf {
	var out []leaf
	for _, f := range field.Of(t) {
		f.Index = append(slices.Clone(index), f.Index...)
		switch at := strict.Under(path, f.Key); {
		case f.IsSection():
			out = append(out, leaves(f.Type, at, f.Index)...)
		case !f.IsSections():
			out = append(out, leaf{Field: f, path: at})
		}
	}
	return out
}

// override puts a text from outside the file over what the file says.
func (l *loader) override(to leaf, source, text string) {
	root, path := reflect.ValueOf(&l.doc).Elem(), to.path
	if to.quick {
		root, path = reflect.ValueOf(&l.quick).Elem(), quickPath(to.path)
	}
	maps.DeleteFunc(l.Where, func(p string, _ strict.Place) bool { return strings.HasPrefix(p, path+"[") })
	l.Where[path] = strict.Place{Source: source}
	if w := to.Set(root.FieldByIndex(to.Index), text); w != nil {
		l.At(path, w.Problem, w.Fix)
	}
}

// quickPath keeps the keys of quick apart from those of the file.
func quickPath(path string) string { return "quick." + path }

func (l *loader) environment() {
	env := make(map[string]string)
	for _, pair := range l.o.Env {
		if name, value, _ := strings.Cut(pair, "="); value != "" && strings.HasPrefix(name, "ANTEROOM_") {
			env[name] = value
		}
	}
	var known []string
	for _, to := range allLeaves() {
		name, fileName := to.env(), to.env()+"_FILE"
		known = append(known, name, fileName)
		text, direct := env[name]
		file, indirect := env[fileName]
		switch {
		case direct && indirect:
			l.Where[fileName] = strict.Place{Source: fileName}
			l.At(fileName, "is set together with "+name, "unset one of them")
		case indirect:
			l.Where[fileName] = strict.Place{Source: fileName}
			if data, ok := l.Read(fileName, file, 1<<20); ok {
				l.override(to, fileName, strings.TrimSpace(string(data)))
			}
		case direct:
			l.override(to, name, text)
		}
	}
	// Variables that nobody reads are only a fault when they look like a slip: container
	// platforms add variables of their own that begin with the name of a service.
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if slices.Contains(known, name) {
			continue
		}
		if meant := anteroom.Nearest(name, known, 2); meant != "" {
			l.Where[name] = strict.Place{Source: name}
			l.At(name, "is not read by anything", "did you mean "+meant+"?")
		}
	}
}

func (l *loader) flags() {
	var names []string
	for _, to := range allLeaves() {
		names = append(names, to.flag())
		if text, given := l.o.Flags[to.flag()]; given {
			l.override(to, "--"+to.flag(), text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.o.Flags)) {
		if slices.Contains(names, name) {
			continue
		}
		fix := "--help lists the flags"
		if meant := strict.DidYouMean(name, names); meant != "" {
			fix = "did you mean --" + meant + "?"
		}
		l.Where["--"+name] = strict.Place{Source: "--" + name}
		l.At("--"+name, "is not a flag", fix)
	}
}

// expandQuick makes the site and the room of quick unless the file has its own.
func (l *loader) expandQuick() {
	origin, hasOrigin := l.Where[quickPath("origin")]
	if hasOrigin {
		if len(l.doc.Sites) > 0 {
			l.At(quickPath("origin"), "cannot be used with sites in the file", "change the site's origins in the file")
		} else {
			site := Site{}
			field.Fill(reflect.ValueOf(&site).Elem())
			site.Hosts, site.Origins = []string{"*"}, l.quick.Origin
			l.doc.Sites = []Site{site}
			l.Where["sites[0].origins"] = origin
		}
	}
	wanted := hasOrigin && l.o.File == ""
	for _, f := range quickFields() {
		from, given := l.Where[quickPath(f.Key)]
		if !given || f.Key == "origin" {
			continue
		}
		if len(l.doc.Rooms) > 0 {
			l.At(quickPath(f.Key), "cannot be used with rooms in the file", "change the room in the file")
			return
		}
		wanted = true
		l.Where["rooms[0]."+f.Key] = from
	}
	if !wanted || len(l.doc.Rooms) > 0 {
		return
	}
	r := room{}
	field.Fill(reflect.ValueOf(&r).Elem())
	r.Name, r.Host, r.Settings = "default", "*", l.quick.Settings
	if _, given := l.Where[quickPath("new_users_per_minute")]; !given {
		r.NewUsersPerMinute = min(r.NewUsersPerMinute, r.TotalActiveUsers)
	}
	l.doc.Rooms = []room{r}
}
