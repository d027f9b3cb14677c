// Package graph is the published GraphQL API for analytics, /client/v4/graphql: the raw rows and the
// groups of what was recorded of waiting rooms, with the published filters, dimensions, aggregates
// and orders.
//
// gqlparser parses and validates; what a request costs is bounded in document.go before validation, in
// plan.go when fragments are put in, and in work.go by the fields that are answered, the rows that are
// read and those that are returned. introspection.go answers questions about the schema.
//
// schema.graphql is made from the tables in field.go. filter.go is what a filter means, span.go
// which spans of time have to be read for it and at which resolution, dataset.go the two nodes.
package graph

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/packed"
	"github.com/anteroom/anteroom/manage"
)

// Path is where the API lives.
const Path = "/client/v4/graphql"

// Bounds of a request.
const (
	maxQueryBytes      = 16 << 10
	maxRequestBytes    = 64 << 10 // of the body, with the variables
	maxTokens          = 4000
	maxNesting         = 32 // lists and objects of a value in each other
	maxDepth           = 16 // fields in each other; the usual introspection has 15
	maxNameBytes       = 100
	maxOperations      = 20
	maxVariables       = 50
	maxVariableValues  = 2000 // values in the variables, and in lists of theirs
	maxVariableMembers = 200  // names in objects in the variables
	maxArguments       = 100  // fields with arguments
	maxSelections      = 500  // after fragments
	maxErrors          = 20   // reported at once

	maxFields     = 400_000 // answered in all
	maxMetaFields = 8_000   // of those, about the schema
	maxZones      = 10      // of one query, as published
	maxPageSize   = 10_000  // rows of one node, and of all nodes together
	maxNodeFields = 100
	maxScanned    = analytics.MaxRows // rows that are read for all nodes together

	maxQueries = 300 // of one token in budgetWindow, as published
)

const (
	budgetWindow = 5 * time.Minute
	longestQuery = 5 * time.Second
)

// schema.graphql.gz is schema.graphql, packed by the test that makes it.
//
//go:embed schema.graphql.gz
var packedSchema []byte

// Config configures the API. Manager and Log are required.
type Config struct {
	Manager *manage.Manager
	// Minutes and Retention are how long rows of minutes, and any rows, are kept; 0 means 32 and 400
	// days. Quarters of an hour are kept three times as long as minutes.
	Minutes, Retention time.Duration
	Now                func() time.Time // the wall clock; nil means time.Now
	Log                *slog.Logger
}

// reader is what is asked for data: [manage.Manager].
type reader interface {
	Zones(by manage.Caller) []anteroom.Zone
	Rooms(by manage.Caller, zone anteroom.ZoneID) ([]anteroom.Room, error)
	Analytics(ctx context.Context, by manage.Caller, q analytics.Query) (analytics.Answer, error)
}

// graph is the API.
type graph struct {
	Config
	manage reader
	schema *ast.Schema
	budget budget
}

// New returns the handler of POST requests to Path.
func New(c Config) http.Handler {
	g := newGraph(c, c.Manager)
	return api.New(api.Config{Authenticate: c.Manager.Authenticate, Log: c.Log}, []api.Route{{Method: http.MethodPost, Path: Path, Write: g.serve}})
}

func newGraph(c Config, from reader) *graph {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Minutes == 0 {
		c.Minutes = 32 * 24 * time.Hour
	}
	c.Retention = cmp.Or(c.Retention, 400*24*time.Hour)
	g := &graph{Config: c, manage: from}
	g.budget.now = c.Now
	g.schema = gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: string(packed.Unpack(packedSchema))})
	delete(g.schema.Directives, "defer") // the parser knows it, nothing here does
	return g
}
