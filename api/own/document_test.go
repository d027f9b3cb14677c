package own

import (
	"bytes"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"flag"
	"net/netip"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/internal/packed"
)

var update = flag.Bool("update", false, "rewrite openapi.json and openapi.json.gz")

// TestTheDocumentIsMadeFromRoutesAndTypes fails when openapi.json or what is in the binary of it is stale; -update writes both.
func TestTheDocumentIsMadeFromRoutesAndTypes(t *testing.T) {
	made := makeDocument(t)
	if *update {
		for name, content := range map[string][]byte{"openapi.json": made, "openapi.json.gz": packed.Pack(made)} {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if read, err := os.ReadFile("openapi.json"); err != nil || !bytes.Equal(made, read) || !bytes.Equal(made, document()) {
		t.Error("openapi.json or openapi.json.gz is stale: run go test ./api/own -update", err)
	}
}

// object is a JSON object under construction.
type object = api.Members

func is(name string, value any) api.Member { return api.Member{Name: name, Value: value} }

func ref(kind, name string) object {
	return object{is("$ref", "#/components/"+kind+"/"+name)}
}

const (
	idPattern    = "^[0-9a-f]{32}$"
	jsonMedia    = "application/json"
	documentPath = Prefix + "/openapi.json"
)

// inPath are the path parameters that are not plain ids.
var inPath = map[string]object{
	"reference": {is("schema", object{is("type", "string"), is("pattern", "^([0-9A-Fa-f]{5}-[0-9A-Fa-f]{5}|[0-9A-Fa-f]{32})$")}), is("description", "The code on the waiting page, or a whole id.")},
	"session":   {is("schema", object{is("type", "string"), is("pattern", "^[0-9A-Fa-f]{32}$")}), is("description", "The id of the visitor, as found by the code.")},
	"number":    {is("schema", object{is("type", "integer"), is("minimum", 0)}), is("description", "Number of the occurrence, from 0.")},
	"node":      {is("schema", object{is("type", "string"), is("pattern", "^[A-Za-z0-9_-]{1,63}$")})},
}

func makeDocument(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{answers: map[string]any{}, schemas: map[string]any{}}
	if err := jsonv2.Unmarshal(text, &m.examples); err != nil {
		t.Fatal(err)
	}
	all := (&face{}).operations()
	for _, o := range slices.Concat(all...) {
		if o.result != nil {
			m.schema(o.result, "", false)
		}
	}
	m.answers, m.schemas = m.schemas, map[string]any{}
	tags := []object{{is("name", "description")}}
	paths := object{is(documentPath, object{is("get", object{is("operationId", "describe"), is("tags", []string{"description"}), is("summary", "This document"), is("security", []any{}),
		is("responses", m.responses(object{is("application/vnd.oai.openapi+json;version=3.1", object{is("schema", object{is("type", "object")})})}))})})}
	for _, group := range all {
		tags = append(tags, object{is("name", group[0].tag)})
		for _, o := range group {
			made := is(strings.ToLower(o.Method), m.operation(o))
			if i := slices.IndexFunc(paths, func(p api.Member) bool { return p.Name == o.Path }); i >= 0 {
				paths[i].Value = append(paths[i].Value.(object), made)
			} else {
				paths = append(paths, is(o.Path, object{made}))
			}
		}
	}
	problem := object{is("type", "object"), is("description", "The answer to every request that fails."), is("required", []string{"success", "errors", "messages", "result"}),
		is("properties", object{is("success", object{is("const", false)}), is("errors", object{is("type", "array"), is("minItems", 1), is("items", m.schema(reflect.TypeFor[api.Message](), "", false))}),
			is("messages", object{is("type", "array"), is("items", ref("schemas", "Message"))}), is("result", object{is("type", "null")})}),
		is("additionalProperties", false)}
	m.schemas["Problem"] = problem
	whole, err := jsonv2.Marshal(object{
		is("openapi", "3.1.0"), is("jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema"),
		is("info", object{is("title", "Anteroom"), is("version", "1"), is("summary", "What the published API lacks"),
			is("description", "The envelope and the authentication are those of the published API, which lives under /client/v4 of the same listener."),
			is("license", object{is("name", "Apache-2.0"), is("identifier", "Apache-2.0")})}),
		is("servers", []object{{is("url", "http://127.0.0.1:8081")}}),
		is("security", []object{{is("token", []any{})}, {is("email", []any{}), is("key", []any{})}}),
		is("tags", tags), is("paths", paths),
		is("components", object{
			is("securitySchemes", object{is("token", object{is("type", "http"), is("scheme", "bearer")}),
				is("email", object{is("type", "apiKey"), is("in", "header"), is("name", "X-Auth-Email")}), is("key", object{is("type", "apiKey"), is("in", "header"), is("name", "X-Auth-Key")})}),
			is("responses", object{is("Problem", object{is("description", "The request failed."),
				is("content", object{is(jsonMedia, object{is("schema", ref("schemas", "Problem")), is("example", envelope(false, m.take("problem").Result, nil))})})})}),
			is("schemas", m.schemas)}),
	}, jsonv2.Deterministic(true), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.examples) > 0 {
		t.Errorf("examples of no operation: %v", m.examples)
	}
	var b bytes.Buffer
	indent(t, &b, whole, 0)
	b.WriteByte('\n')
	return b.Bytes()
}

// maker makes the parts of the document.
type maker struct {
	answers  map[string]any // schemas of answers by name
	schemas  map[string]any // those of the document
	examples map[string]example
}

// example is what an operation takes and gives, without the envelope.
type example struct {
	Body   jsontext.Value `json:"body"`
	Result jsontext.Value `json:"result"`
}

// take returns an example, which must not be taken again.
func (m *maker) take(name string) example {
	e := m.examples[name]
	delete(m.examples, name)
	return e
}

func envelope(good bool, result any, info any) object {
	out := object{is("success", good), is("errors", []any{}), is("messages", []any{}), is("result", result)}
	if !good {
		out[1].Value, out[3].Value = result, nil
	}
	if info != nil {
		out = append(out, is("result_info", info))
	}
	return out
}

func (m *maker) responses(content object) object {
	return object{is("200", object{is("description", "The request succeeded."), is("content", content)}), is("default", ref("responses", "Problem"))}
}

func (m *maker) operation(o operation) object {
	e := m.take(o.id)
	out := object{is("operationId", o.id), is("tags", []string{o.tag}), is("summary", o.summary)}
	if o.note != "" {
		out = append(out, is("description", o.note))
	}
	if p := parametersOf(o); len(p) > 0 {
		out = append(out, is("parameters", p))
	}
	switch {
	case o.body != nil:
		out = append(out, is("requestBody", object{is("required", !o.optional), is("content", object{is(jsonMedia, object{is("schema", m.schema(o.body, "", true)), is("example", e.Body)})})}))
	case o.takes != "":
		out = append(out, is("requestBody", object{is("required", true), is("content", object{is(o.takes, object{is("schema", object{is("type", "string"), is("format", "binary")})})})}))
	}
	var content object
	if o.result != nil {
		content = append(content, is(jsonMedia, m.answer(o, e.Result)))
	}
	for _, one := range o.media {
		s := object{is("type", "string")}
		if one.binary {
			s = append(s, is("format", "binary"))
		}
		if one.doc != "" {
			s = append(s, is("description", one.doc))
		}
		content = append(content, is(one.name, object{is("schema", s)}))
	}
	return append(out, is("responses", m.responses(content)))
}

// answer is a good answer in the envelope.
func (m *maker) answer(o operation, result jsontext.Value) object {
	required := []string{"success", "errors", "messages", "result"}
	properties := object{is("success", object{is("const", true)}), is("errors", object{is("type", "array"), is("maxItems", 0)}),
		is("messages", object{is("type", "array"), is("items", ref("schemas", "Message"))}), is("result", m.schema(o.result, "", false))}
	var info any
	if o.info != nil {
		required, properties = append(required, "result_info"), append(properties, is("result_info", m.schema(o.info, "", false)))
		info = map[string]int{"count": 1}
		if o.info == reflect.TypeFor[api.PageInfo]() {
			_, info = api.Part([]int{1}, api.Page{Number: 1, PerPage: api.DefaultPerPage})
		}
	}
	return object{is("schema", object{is("type", "object"), is("required", required), is("properties", properties), is("additionalProperties", false)}),
		is("example", envelope(true, result, info))}
}

func parametersOf(o operation) []object {
	var out []object
	for segment := range strings.SplitSeq(o.Path, "/") {
		name, ok := strings.CutPrefix(segment, "{")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		says, ok := inPath[name]
		if !ok {
			says = object{is("schema", object{is("type", "string"), is("pattern", idPattern)})}
		}
		out = append(out, append(object{is("name", name), is("in", "path"), is("required", true)}, says...))
	}
	if o.info == reflect.TypeFor[api.PageInfo]() {
		out = append(out, object{is("name", "page"), is("in", "query"), is("schema", object{is("type", "integer"), is("minimum", 1)})},
			object{is("name", "per_page"), is("in", "query"), is("schema", object{is("type", "integer"), is("minimum", api.MinPerPage), is("maximum", api.MaxPerPage), is("multipleOf", api.MinPerPage)})})
	}
	for _, q := range o.query {
		s := object{is("type", q.is)}
		switch {
		case q.enum != nil:
			s = object{is("enum", q.enum)}
		case q.is == "date-time":
			s = object{is("type", "string"), is("format", q.is)}
		case q.is == "integer":
			if s = append(s, is("minimum", q.min)); q.max > 0 {
				s = append(s, is("maximum", q.max))
			}
		}
		p := object{is("name", q.name), is("in", "query")}
		if q.required {
			p = append(p, is("required", true))
		}
		if p = append(p, is("schema", s)); q.doc != "" {
			p = append(p, is("description", q.doc))
		}
		out = append(out, p)
	}
	return out
}

// schema returns the JSON Schema of a type, by the tags that package schema describes.
func (m *maker) schema(t reflect.Type, tag reflect.StructTag, inBody bool) object {
	null := inBody && tag.Get("optional") != ""
	if t.Kind() == reflect.Pointer {
		_, options, _ := strings.Cut(tag.Get("json"), ",")
		t, null = t.Elem(), null || !inBody && !strings.Contains(options, "omit")
		if t == reflect.TypeFor[struct{}]() {
			return object{is("type", "null")}
		}
	}
	s := m.typed(t, tag, inBody)
	if null {
		switch s[0].Name {
		case "type":
			s[0].Value = []any{s[0].Value, "null"}
		case "enum":
			s[0].Value = append(slices.Clone(s[0].Value.([]any)), nil)
		default:
			s = object{is("anyOf", []object{s, {is("type", "null")}})}
		}
	}
	if doc := tag.Get("doc"); doc != "" {
		s = append(s, is("description", doc))
	}
	return s
}

func (m *maker) typed(t reflect.Type, tag reflect.StructTag, inBody bool) object {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[anteroom.Stamp]():
		return object{is("type", "string"), is("format", "date-time")}
	case reflect.TypeFor[netip.Prefix]():
		return object{is("type", "string")}
	case reflect.TypeFor[anteroom.ZoneID](), reflect.TypeFor[anteroom.RoomID](), reflect.TypeFor[anteroom.EventID](), reflect.TypeFor[anteroom.WebhookID]():
		return object{is("type", "string"), is("pattern", idPattern)}
	case reflect.TypeFor[number]():
		return object{is("type", []string{"number", "null"})}
	case reflect.TypeFor[AnalyticsTotal]():
		return m.ofColumns(t, "All null where nothing was recorded. Percentiles are in seconds.", m.typed(reflect.TypeFor[number](), "", false))
	case reflect.TypeFor[AnalyticsSeries]():
		return m.ofColumns(t, "One value for each moment of time, with the same meaning as in AnalyticsTotal.", m.typed(reflect.TypeFor[[]number](), "", false))
	}
	switch t.Kind() {
	case reflect.Struct:
		return m.ofStruct(t, inBody)
	case reflect.Bool:
		return object{is("type", "boolean")}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		least, _ := strconv.Atoi(tag.Get("min"))
		return bounded(object{is("type", "integer"), is("minimum", least)}, tag, "", "maximum")
	case reflect.Float64:
		return bounded(object{is("type", "number")}, tag, "minimum", "maximum")
	case reflect.Array:
		return object{is("type", "array"), is("items", m.typed(t.Elem(), "", inBody)), is("minItems", t.Len()), is("maxItems", t.Len())}
	case reflect.Slice:
		s := bounded(object{is("type", "array"), is("items", m.typed(t.Elem(), reflect.StructTag(`enum:"`+tag.Get("enum")+`"`), inBody))}, tag, "minItems", "maxItems")
		if tag.Get("enum") != "" {
			s = append(s, is("uniqueItems", true))
		}
		return s
	case reflect.Map:
		value := m.typed(t.Elem(), "", inBody)
		if tag.Get("single") != "" {
			value[0].Value = []any{"string", value[0].Value}
		}
		return object{is("type", "object"), is("additionalProperties", value)}
	case reflect.Interface:
		return object{is("type", []string{"string", "boolean", "integer"})}
	}
	var values []string
	if enum := tag.Get("enum"); enum != "" {
		values = strings.Split(enum, ",")
	} else if v, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok {
		values = v.Values()
	}
	if values != nil {
		all := make([]any, len(values))
		for i := range values {
			all[i] = values[i]
		}
		return object{is("enum", all)}
	}
	s := bounded(object{is("type", "string")}, tag, "minLength", "maxLength")
	if pattern := tag.Get("pattern"); pattern != "" {
		s = append(s, is("pattern", pattern))
	}
	return s
}

func bounded(s object, tag reflect.StructTag, least, most string) object {
	if n, err := strconv.Atoi(tag.Get("min")); err == nil && least != "" {
		s = append(s, is(least, n))
	}
	if n, err := strconv.Atoi(tag.Get("max")); err == nil {
		s = append(s, is(most, n))
	}
	return s
}

// ofColumns adds an object with a member for each column to the schemas.
func (m *maker) ofColumns(t reflect.Type, doc string, value object) object {
	var names []string
	var properties object
	for _, c := range columns {
		s := slices.Clone(value)
		if c.doc != "" && t == reflect.TypeFor[AnalyticsTotal]() {
			s = append(s, is("description", c.doc))
		}
		names, properties = append(names, c.name), append(properties, is(c.name, s))
	}
	m.schemas[t.Name()] = object{is("type", "object"), is("description", doc), is("required", names), is("properties", properties), is("additionalProperties", false)}
	return ref("schemas", t.Name())
}

// ofStruct adds a struct to the schemas. Where a type is both body and answer and has optional members, the
// two schemas differ, and that of the body is called a Spec.
func (m *maker) ofStruct(t reflect.Type, inBody bool) object {
	name := t.Name()
	if from := path.Base(t.PkgPath()); from == "report" && name != "Report" {
		name = "Report" + name
	}
	s := object{is("type", "object")}
	var required []string
	var properties object
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Name == "_" && len(f.Index) == 1 {
			s = append(s, is("description", f.Tag.Get("doc")))
		}
		if key == "" {
			continue
		}
		if inBody && f.Tag.Get("optional") == "" || !inBody && (!strings.Contains(options, "omit") || f.Tag.Get("required") != "") {
			required = append(required, key)
		}
		properties = append(properties, is(key, m.schema(f.Type, withSetting(f.Tag, key), inBody)))
	}
	if required != nil {
		s = append(s, is("required", required))
	}
	s = append(s, is("properties", properties), is("additionalProperties", false))
	if other, ok := m.answers[name]; ok && inBody && !reflect.DeepEqual(other, any(s)) {
		name += "Spec"
	}
	m.schemas[name] = s
	return ref("schemas", name)
}

// withSetting appends the tags of a setting to those of the field, which take precedence.
func withSetting(tag reflect.StructTag, key string) reflect.StructTag {
	tables := map[string][]field.Field{"room": anteroom.RoomFields(), "repeat": field.Of(reflect.TypeFor[anteroom.Repeat]()), "zone": field.Of(reflect.TypeFor[anteroom.Zone]())}
	for _, f := range tables[tag.Get("setting")] {
		if f.Key == key {
			for name, value := range map[string]string{"doc": f.Doc, "min": f.Min, "max": f.Max, "enum": strings.Join(f.Enum, ",")} {
				if value != "" {
					tag += reflect.StructTag(" " + name + ":" + strconv.Quote(value))
				}
			}
			return tag
		}
	}
	if tag.Get("setting") != "" {
		panic(key + " is no setting of a " + tag.Get("setting"))
	}
	return tag
}

// indent writes a value, on one line if it fits.
func indent(t *testing.T, b *bytes.Buffer, v jsontext.Value, depth int) {
	t.Helper()
	const width = 130
	kind := v.Kind()
	if len(v)+depth <= width || kind != '{' && kind != '[' {
		b.Write(v)
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	next := func() jsontext.Value {
		one, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(one)
	}
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	b.WriteByte(byte(kind))
	for first := true; d.PeekKind() != '}' && d.PeekKind() != ']'; first = false {
		if !first {
			b.WriteByte(',')
		}
		b.WriteString("\n" + strings.Repeat(" ", depth+1))
		if kind == '{' {
			b.Write(next())
			b.WriteString(": ")
		}
		indent(t, b, next(), depth+1)
	}
	b.WriteString("\n" + strings.Repeat(" ", depth))
	b.WriteByte(byte(kind) + 2)
}
