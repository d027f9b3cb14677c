package api

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
)

// Codes of the published API, and those of ours where it names none.
const (
	CodeNotFound     = 1001  // the object does not exist
	CodeInvalid      = 1002  // the body, a parameter or the state it would make is at fault
	CodeHeaders      = 6003  // an authentication header is malformed
	CodeNoRoute      = 7000  // there is no such path
	CodeNoZone       = 7003  // the zone or account does not exist
	CodeThrottled    = 971   // too many failed authentications
	CodeDenied       = 10000 // no token, not a valid one, or it may not do this
	CodeElsewhere    = 10403 // another process does this
	CodeMethod       = 10405 // the path has no such method
	CodePrecondition = 10412 // If-Match names another state
	CodeInternal     = 10500 // our fault; the log has the request id
	CodeUnavailable  = 10503 // try again
)

// Message is an item of errors or messages in the envelope.
type Message struct {
	Code    int     `json:"code" min:"900"`
	Message string  `json:"message"`
	Source  *Source `json:"source,omitempty"`
}

// Source names the field that a message is about, as a JSON pointer into the body.
type Source struct {
	Pointer string `json:"pointer" doc:"JSON pointer into the body."`
}

// Answer is what an operation gives back.
type Answer struct {
	Result   any
	Info     any // result_info; nil for none
	Messages []Message
	ETag     string // of a single resource; empty for none
}

// Problem is an error with its place in the envelope. Operations return one where the kind
// of an error does not say enough.
type Problem struct {
	Status int
	Errors []Message
	Header [2]string // one more header of the answer; empty for none
}

func (p *Problem) Error() string { return p.Errors[0].Message }

// Refuse makes a problem with one message.
func Refuse(status, code int, message string) *Problem {
	return &Problem{Status: status, Errors: []Message{{Code: code, Message: message}}}
}

// NotFound is the problem of an object that does not exist.
func NotFound() *Problem { return Refuse(http.StatusNotFound, CodeNotFound, "Object not found.") }

// FaultsOf returns the faults in the error's chain.
func FaultsOf(err error) (anteroom.Faults, bool) { return errors.AsType[anteroom.Faults](err) }

// Rename gives the faults of an error the names that their fields have in the body.
func Rename(err error, rename func(path string) string) error {
	faults, ok := FaultsOf(err)
	if !ok || anteroom.KindOf(err) != anteroom.Invalid {
		return err
	}
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].Path = rename(faults[i].Path)
	}
	return faults.Err()
}

// problemOf translates an error. It is the one place where kinds become statuses. Never 408,
// 409 or 429 for what a caller can only mend by sending something else, for clients try
// those again.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if faults, ok := FaultsOf(err); ok && anteroom.KindOf(err) == anteroom.Invalid {
		p := &Problem{Status: http.StatusBadRequest}
		for _, f := range faults[:min(len(faults), maxFaults)] {
			switch {
			case f.Line > 0:
				f.Problem += fmt.Sprintf(" at line %d, column %d", f.Line, f.Column)
			case f.Column > 0:
				f.Problem += fmt.Sprintf(" at character %d", f.Column)
			}
			m := Message{Code: CodeInvalid, Message: strings.TrimPrefix(f.String(), ": ") + ": invalid data"}
			if f.Path != "" {
				m.Source = &Source{Pointer: pointer(f.Path)}
			}
			p.Errors = append(p.Errors, m)
		}
		return p
	}
	switch anteroom.KindOf(err) {
	case anteroom.Invalid, anteroom.Conflict:
		return Refuse(http.StatusBadRequest, CodeInvalid, err.Error()+": invalid data")
	case anteroom.NotFound:
		return NotFound()
	case anteroom.Denied:
		return Refuse(http.StatusForbidden, CodeDenied, "Authentication error: "+err.Error())
	case anteroom.Elsewhere:
		return Refuse(http.StatusForbidden, CodeElsewhere, err.Error())
	case anteroom.Unavailable:
		p := Refuse(http.StatusServiceUnavailable, CodeUnavailable, err.Error())
		p.Header = [2]string{"Retry-After", "1"}
		return p
	}
	return Refuse(http.StatusInternalServerError, CodeInternal, "Internal error")
}

var indices = regexp.MustCompile(`\[(\d+)\]`)

// pointer writes a fault's path as a JSON pointer.
func pointer(path string) string {
	path = strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return "/" + strings.TrimPrefix(strings.ReplaceAll(indices.ReplaceAllString(path, ".$1"), ".", "/"), "/")
}

type envelope struct {
	Success    bool      `json:"success"`
	Errors     []Message `json:"errors"`
	Messages   []Message `json:"messages"`
	Result     any       `json:"result"`
	ResultInfo any       `json:"result_info,omitempty"`
}

// send writes the envelope. Bytes that are not UTF-8 can only come from a file that was
// written by hand; they must not keep the rest from being read.
func send(w http.ResponseWriter, status int, e envelope) {
	out := &late{w: w, status: status}
	if err := json.MarshalWrite(out, e, jsontext.AllowInvalidUTF8(true)); err != nil && !out.begun {
		out.kept, out.status = nil, http.StatusInternalServerError
		json.MarshalWrite(out, envelope{Errors: Refuse(out.status, CodeInternal, "Internal error").Errors})
	}
	out.Write([]byte{'\n'})
	out.begin()
}

// late is an answer that begins when it is whole, or too large to be kept: a page of a list can
// have hundreds of megabytes of templates, which are the same few in memory.
type late struct {
	w      http.ResponseWriter
	status int
	kept   []byte
	begun  bool
}

const maxKept = 64 << 10

func (l *late) Write(p []byte) (int, error) {
	if !l.begun && len(l.kept)+len(p) <= maxKept {
		l.kept = append(l.kept, p...)
		return len(p), nil
	}
	l.begin()
	return l.w.Write(p)
}

func (l *late) begin() {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	l.w.WriteHeader(l.status)
	l.w.Write(l.kept)
}

// SendAnswer writes a good answer in the envelope: for operations that write it themselves.
func SendAnswer(w http.ResponseWriter, a Answer) {
	if a.ETag != "" {
		w.Header().Set("ETag", a.ETag)
	}
	send(w, http.StatusOK, envelope{Success: true, Messages: a.Messages, Result: a.Result, ResultInfo: a.Info})
}

// SendError writes an error in the envelope: for handlers in front of a face.
func SendError(w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.Header[0] != "" {
		w.Header().Set(p.Header[0], p.Header[1])
	}
	send(w, p.Status, envelope{Errors: p.Errors})
}
