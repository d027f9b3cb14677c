package graph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// What GraphiQL and graphql-js send (getIntrospectionQuery).
const fullIntrospection = `
    query IntrospectionQuery {
      __schema {

        queryType { name }
        mutationType { name }
        subscriptionType { name }
        types {
          ...FullType
        }
        directives {
          name
          description

          locations
          args {
            ...InputValue
          }
        }
      }
    }

    fragment FullType on __Type {
      kind
      name
      description

      fields(includeDeprecated: true) {
        name
        description
        args {
          ...InputValue
        }
        type {
          ...TypeRef
        }
        isDeprecated
        deprecationReason
      }
      inputFields {
        ...InputValue
      }
      interfaces {
        ...TypeRef
      }
      enumValues(includeDeprecated: true) {
        name
        description
        isDeprecated
        deprecationReason
      }
      possibleTypes {
        ...TypeRef
      }
    }

    fragment InputValue on __InputValue {
      name
      description
      type { ...TypeRef }
      defaultValue


    }

    fragment TypeRef on __Type {
      kind
      name
      ofType {
        kind
        name
        ofType {
          kind
          name
          ofType {
            kind
            name
            ofType {
              kind
              name
              ofType {
                kind
                name
                ofType {
                  kind
                  name
                  ofType {
                    kind
                    name
                    ofType {
                      kind
                      name
                      ofType {
                        kind
                        name
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  `

type shownType struct {
	Kind, Name  string
	Fields      []struct{ Name string }
	InputFields []struct{ Name string }
	EnumValues  []struct{ Name string }
}

func TestIntrospection(t *testing.T) {
	w := newWorld(t)
	g := w.graph()
	a, did := g.run(t.Context(), admin, 1, body{Query: fullIntrospection, OperationName: "IntrospectionQuery"})
	if a.Errors != nil {
		t.Fatal(a.Errors)
	}
	if n := did.meta; n < 5_000 || n > maxMetaFields*9/10 {
		t.Errorf("it answers %d fields; MaxMetaFields is %d", n, maxMetaFields)
	}
	var data struct {
		Schema struct {
			QueryType    struct{ Name string }
			MutationType any
			Types        []shownType
		} `json:"__schema"`
	}
	if err := json.Unmarshal(a.Data, &data); err != nil {
		t.Fatal(err)
	}
	found := map[string]shownType{}
	for _, one := range data.Schema.Types {
		found[one.Name] = one
	}
	const raw, groups = "ZoneWaitingRoomAnalyticsAdaptive", "ZoneWaitingRoomAnalyticsAdaptiveGroups"
	for name, want := range map[string]struct {
		kind string
		n    int
	}{
		"viewer": {"OBJECT", 2}, "zone": {"OBJECT", 4}, "string": {"SCALAR", 0}, "Time": {"SCALAR", 0},
		raw: {"OBJECT", 33}, raw + "Filter_InputObject": {"INPUT_OBJECT", 2 + 29*8 + 2*10 + 2*8}, raw + "OrderBy": {"ENUM", 2 * 34},
		groups: {"OBJECT", 6}, groups + "Filter_InputObject": {"INPUT_OBJECT", 2 + 7*8 + 10}, groups + "OrderBy": {"ENUM", 2 * (8 + 13*3 + 1 + 2 + 7 + 16)},
		groups + "Avg": {"OBJECT", 14}, groups + "AvgWeighted": {"OBJECT", 16}, groups + "Max": {"OBJECT", 13}, groups + "Min": {"OBJECT", 13},
		groups + "Sum": {"OBJECT", 7}, groups + "Dimensions": {"OBJECT", 8}, "Settings": {"OBJECT", 6}, "ZoneFilter_InputObject": {"INPUT_OBJECT", 3},
	} {
		one := found[name]
		if n := len(one.Fields) + len(one.InputFields) + len(one.EnumValues); one.Kind != want.kind || n != want.n {
			t.Errorf("%s: %q with %d members, want %s with %d", name, one.Kind, n, want.kind, want.n)
		}
	}
	if data.Schema.QueryType.Name != "Query" || data.Schema.MutationType != nil {
		t.Errorf("%+v %v", data.Schema.QueryType, data.Schema.MutationType)
	}
}

// A schema that parses by itself is one that clients can build from the file.
func TestTheSchemaFileIsWhole(t *testing.T) {
	if _, err := gqlparser.LoadSchema(&ast.Source{Input: published()}); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkIntrospection(b *testing.B) {
	w := newWorld(b)
	g := w.graph()
	n := 0
	for b.Loop() {
		a, did := g.run(b.Context(), admin, 1, body{Query: fullIntrospection})
		if a.Errors != nil {
			b.Fatal(a.Errors)
		}
		n = did.meta
	}
	b.ReportMetric(float64(n), "fields")
}

func TestIntrospectionNeedsAToken(t *testing.T) {
	w := newWorld(t)
	if a := w.post("", Path, w.request(fullIntrospection, nil)); a.Status != 401 || strings.Contains(a.Text, "__schema") {
		t.Errorf("%d %s", a.Status, a.Text)
	}
}
