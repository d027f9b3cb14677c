package own

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// Every route is described, and every description has a route.
func TestTheDocumentHasTheRoutes(t *testing.T) {
	routes := map[string]bool{"GET " + Prefix + "/openapi.json": true}
	for _, r := range (&face{}).routes() {
		routes[r.Method+" "+r.Path] = true
	}
	described := map[string]bool{}
	ids := map[string]bool{}
	for _, o := range operations(t) {
		name := o.Method + " " + o.Path
		described[name] = true
		if !routes[name] {
			t.Errorf("%s is described and has no route", name)
		}
		if o.ID == "" || ids[o.ID] {
			t.Errorf("%s: the operationId %q is missing or used twice", name, o.ID)
		}
		ids[o.ID] = true
		var inPath []string
		for segment := range strings.SplitSeq(o.Path, "/") {
			if p, ok := strings.CutPrefix(segment, "{"); ok {
				inPath = append(inPath, strings.TrimSuffix(p, "}"))
			}
		}
		for _, p := range o.Parameters {
			if i := slices.Index(inPath, p.Name); p.In == "path" && (i < 0 || !p.Required) {
				t.Errorf("%s: parameter %s is not of the path, or not required", name, p.Name)
			} else if p.In == "path" {
				inPath = slices.Delete(inPath, i, i+1)
			}
		}
		if len(inPath) > 0 {
			t.Errorf("%s: parameters %v are not described", name, inPath)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		if !described[name] {
			t.Errorf("%s has a route and is not described", name)
		}
	}
}

func TestExamplesAreAsTheSchemasSay(t *testing.T) {
	s := documentSchemas(t)
	n := 0
	check := func(pointer string, content map[string]media) {
		t.Helper()
		for kind, m := range content {
			if m.Example == nil {
				if kind == "application/json" {
					t.Errorf("%s has no example", pointer)
				}
				continue
			}
			n++
			s.check(t, pointer+"/content/"+escape(kind)+"/schema", m.Example)
		}
	}
	for _, o := range s.all {
		if o.RequestBody != nil {
			check(o.pointer()+"/requestBody", o.RequestBody.Content)
		}
		check(o.pointer()+"/responses/200", o.Responses["200"].Content)
	}
	if n < 30 {
		t.Errorf("only %d examples were found", n)
	}
	for _, name := range []string{"Problem"} {
		var doc struct {
			Components struct {
				Responses map[string]struct{ Content map[string]media }
			}
		}
		if err := json.Unmarshal(document(), &doc); err != nil {
			t.Fatal(err)
		}
		check("/components/responses/"+name, doc.Components.Responses[name].Content)
	}
}

// A schema that is never used, or that lets everything pass, shows nothing.
func TestSchemasBite(t *testing.T) {
	s := documentSchemas(t)
	for _, bad := range []string{`{}`, `{"id":"x"}`, `{"paused":true,"draining":false,"reset_at":"yesterday","message":null}`, `{"paused":true,"draining":false,"reset_at":null,"message":null,"more":1}`} {
		schema, err := s.compiler.Compile("openapi.json#/components/schemas/Controls")
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil {
			t.Fatal(err)
		}
		if schema.Validate(v) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

func TestTheDocumentIsServedToEverybody(t *testing.T) {
	w := newWorld(t)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequest("GET", Prefix+"/openapi.json", nil))
	if rec.Code != 200 || !bytes.Equal(readAll(t, rec.Body), document()) || !strings.HasPrefix(rec.Header().Get("Content-Type"), "application/vnd.oai.openapi+json") {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	w.refused("", "POST", "/openapi.json", "", 404, "No route")
}

// Tags can only be literals, so those that repeat a constant of the code are compared with it.
func TestTagsHaveTheBoundsOfTheCode(t *testing.T) {
	for _, c := range []struct {
		of               reflect.Type
		field, tag, want string
	}{
		{reflect.TypeFor[schema.TokenSpec](), "Name", "max", strconv.Itoa(anteroom.MaxNameLength)},
		{reflect.TypeFor[schema.TokenSpec](), "Grants", "max", strconv.Itoa(manage.MaxGrants)},
		{reflect.TypeFor[schema.TokenSpec](), "Networks", "max", strconv.Itoa(manage.MaxNetworks)},
		{reflect.TypeFor[schema.Rotation](), "OverlapSeconds", "max", strconv.Itoa(int(manage.MaxTokenOverlap / time.Second))},
		{reflect.TypeFor[schema.Rotation](), "OverlapSeconds", "max", strconv.Itoa(int(manage.MaxWebhookOverlap / time.Second))},
		{reflect.TypeFor[schema.WebhookSpec](), "Name", "max", strconv.Itoa(anteroom.MaxNameLength)},
		{reflect.TypeFor[schema.WebhookSpec](), "Events", "enum", strings.Join(anteroom.Happenings(), ",")},
		{reflect.TypeFor[schema.WebhookSpec](), "LongerThan", "max", strconv.Itoa(anteroom.MaxUsers)},
		{reflect.TypeFor[schema.WebhookSpec](), "MinutesBefore", "max", strconv.Itoa(anteroom.MaxMinutesBefore)},
		{reflect.TypeFor[schema.WebhookSpec](), "SaturatedMinutes", "max", strconv.Itoa(anteroom.MaxSaturatedMinutes)},
		{reflect.TypeFor[schema.Delivery](), "Type", "enum", strings.Join(append(anteroom.Happenings(), anteroom.WebhookTest), ",")},
		{reflect.TypeFor[schema.Admission](), "Count", "max", strconv.Itoa(manage.MaxAdmitNow)},
		{reflect.TypeFor[schema.Controls](), "Message", "max", strconv.Itoa(anteroom.MaxMessageLength)},
		{reflect.TypeFor[schema.InForce](), "Message", "max", strconv.Itoa(anteroom.MaxMessageLength)},
		{reflect.TypeFor[schema.TestRequest](), "Headers", "max", strconv.Itoa(anteroom.MaxHeaderLines)},
		{reflect.TypeFor[schema.RuleTest](), "Action", "enum", anteroom.ActionBypass},
		{reflect.TypeFor[Analytics](), "Resolution", "enum", strings.Join(resolutionNames[1:], ",")},
	} {
		f, ok := c.of.FieldByName(c.field)
		if got := f.Tag.Get(c.tag); !ok || got != c.want {
			t.Errorf("%v.%s: %s is %q, want %q", c.of, c.field, c.tag, got, c.want)
		}
	}
}
