package graph

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gqlerrors "github.com/graph-gophers/graphql-go/errors"
	"github.com/graph-gophers/graphql-go/introspection"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// What extensions.code of an error can be.
const (
	codeInvalid     = "invalid" // the query, a variable or an argument
	codeLimit       = "limit"
	codeAuthz       = "authz"
	codeBudget      = "budget"
	codeUnavailable = "unavailable"
	codeInternal    = "internal"
)

// fault is an error with a code.
type fault struct{ code, message string }

func (f fault) Error() string { return f.message }

// Extensions is what the library puts into the answer.
func (f fault) Extensions() map[string]any { return map[string]any{"code": f.code} }

// work is what one query has done, over all its fields.
type work struct {
	graph  *graph
	by     manage.Caller
	now    time.Time
	left   int // queries of the token's budget
	cancel context.CancelFunc

	fields, meta atomic.Int64
	ended        atomic.Bool                 // by a bound
	finish       func(*gqlerrors.QueryError) // afterField, made once

	mu       sync.Mutex
	zones    map[anteroom.ZoneID]bool
	rows     int
	scanned  int
	tooLarge error // the first bound that was met
}

type workKey struct{}

func workOf(ctx context.Context) *work { return ctx.Value(workKey{}).(*work) }

// stop ends the query because of a bound.
func (w *work) stop(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tooLarge == nil {
		w.tooLarge = err
	}
	w.ended.Store(true)
	w.cancel()
	return err
}

func (w *work) stopped() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tooLarge
}

// visit counts a zone.
func (w *work) visit(id anteroom.ZoneID) error {
	w.mu.Lock()
	w.zones[id] = true
	n := len(w.zones)
	w.mu.Unlock()
	if n > MaxZones {
		return w.stop(fault{codeLimit, fmt.Sprintf("query is about more than %d zones", MaxZones)})
	}
	return nil
}

// scan counts rows that were read.
func (w *work) scan(n int) error {
	w.mu.Lock()
	w.scanned += n
	over := w.scanned > MaxScanned
	w.mu.Unlock()
	if over {
		return w.stop(fault{codeLimit, fmt.Sprintf("query needs more than %d rows: ask for less time, fewer rooms, or a coarser dimension like datetimeHour", MaxScanned)})
	}
	return nil
}

// give counts rows that are returned.
func (w *work) give(n int) error {
	w.mu.Lock()
	w.rows += n
	over := w.rows > MaxPageSize
	w.mu.Unlock()
	if over {
		return w.stop(fault{codeLimit, fmt.Sprintf("answer has more than %d rows in all", MaxPageSize)})
	}
	return nil
}

// counter is told of every field that is answered, and ends a query that has too many.
type counter struct{}

// TraceQuery has nothing to count.
func (counter) TraceQuery(ctx context.Context, _, _ string, _ map[string]any, _ map[string]*introspection.Type) (context.Context, func([]*gqlerrors.QueryError)) {
	return ctx, func([]*gqlerrors.QueryError) {}
}

// TraceField counts.
func (counter) TraceField(ctx context.Context, _, typeName, fieldName string, _ bool, _ map[string]any) (context.Context, func(*gqlerrors.QueryError)) {
	w := workOf(ctx)
	meta := strings.HasPrefix(typeName, "__")
	if w.fields.Add(1) > MaxFields || meta && w.meta.Add(1) > MaxMetaFields {
		w.stop(fault{codeLimit, fmt.Sprintf("answer has more than %d fields, or more than %d about the schema: ask for fewer rows or fields", MaxFields, MaxMetaFields)})
	}
	return ctx, w.finish
}

// enough is the panic that ends a query. The library goes through what is left of its lists
// when a query is cancelled, a field and an error at a time, and recovers from panics in each of
// its goroutines; after a field none of its locks is held.
type enough struct{}

func (w *work) afterField(*gqlerrors.QueryError) {
	if w.ended.Load() {
		panic(enough{})
	}
}

// panicLog keeps what a fault of ours says in the log.
type panicLog struct{ log *slog.Logger }

// LogPanic writes to the log.
func (p panicLog) LogPanic(ctx context.Context, value any) {
	if _, ok := value.(enough); !ok {
		p.log.Error("a GraphQL query met a fault of ours", "request", workOf(ctx).by.RequestID, "panic", value)
	}
}

// MakePanicError tells the caller no more than that there was one.
func (p panicLog) MakePanicError(context.Context, any) *gqlerrors.QueryError {
	return &gqlerrors.QueryError{Message: "internal error", ResolverError: fault{codeInternal, "internal error"}, Extensions: map[string]any{"code": codeInternal}}
}
