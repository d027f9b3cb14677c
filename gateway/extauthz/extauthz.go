// Package extauthz reads and writes the two messages of Envoy's external authorization by gRPC
// (envoy.service.auth.v3.Authorization/Check) and the frames around them.
//
// It knows the fields that a verdict needs, by their numbers, and skips all others. Envoy's own types would be a
// dependency of every user for two messages; the tests of module lab hold this package to them.
package extauthz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// Path is that of the method in gRPC.
	Path = "/envoy.service.auth.v3.Authorization/Check"
	// ContentType begins the media type of every question.
	ContentType = "application/grpc"
	// maxBytes bounds a question: the headers of a visitor and twice as much again for their description. Envoy sends no
	// body unless the filter's with_request_body asks for it.
	maxBytes = 128 << 10
)

// Status codes of gRPC.
const (
	OK                = 0
	InvalidArgument   = 3
	PermissionDenied  = 7
	ResourceExhausted = 8
	Unimplemented     = 12
)

// Check is what Envoy says about a visitor's request. Fields that it leaves out are empty.
type Check struct {
	Method, Host, Scheme string
	Target               string // path and query, as the visitor sent them
	Protocol             string // like HTTP/1.1
	Source               string // the visitor's address, without port
	Header               map[string][]string
	Context              map[string]string // context_extensions of the route
	Time                 time.Time         // when the request came, by Envoy's clock
}

// ReadFrame reads the only message of a call. The code is for the client if there is an error.
func ReadFrame(in io.Reader) (message []byte, code int, err error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, InvalidArgument, errors.New("the call ends before its message")
	}
	if head[0] != 0 {
		return nil, Unimplemented, errors.New("compressed messages are not supported")
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxBytes {
		return nil, ResourceExhausted, fmt.Errorf("the question has %d bytes, the most is %d: leave out with_request_body", size, maxBytes)
	}
	message = make([]byte, size)
	if _, err := io.ReadFull(in, message); err != nil {
		return nil, InvalidArgument, errors.New("the call ends within its message")
	}
	return message, OK, nil
}

// Frame returns the message as a client reads it.
func Frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// Read reads a CheckRequest. What it says in two ways is an error.
func Read(message []byte) (Check, error) {
	c := Check{Header: map[string][]string{}, Context: map[string]string{}}
	pseudo := map[string]string{}
	err := at(message, map[protowire.Number]reader{
		1: within(map[protowire.Number]reader{ // attributes
			1: within(map[protowire.Number]reader{ // source
				1: within(map[protowire.Number]reader{ // address
					1: within(map[protowire.Number]reader{2: text(&c.Source, "source.address")}), // socket_address
				}),
			}),
			4: within(map[protowire.Number]reader{ // request
				1: stamp(&c.Time),
				2: within(map[protowire.Number]reader{ // http
					2: text(&c.Method, "http.method"),
					3: pair(2, func(name, value string) error { // headers
						if _, twice := c.Header[textproto.CanonicalMIMEHeaderKey(name)]; twice {
							return fmt.Errorf("http.headers has %q twice", name)
						}
						return header(c.Header, pseudo, name, value)
					}),
					4:  text(&c.Target, "http.path"),
					5:  text(&c.Host, "http.host"),
					6:  text(&c.Scheme, "http.scheme"),
					10: text(&c.Protocol, "http.protocol"),
					13: within(map[protowire.Number]reader{ // header_map, with encode_raw_headers
						1: pair(3, func(name, value string) error { return header(c.Header, pseudo, name, value) }),
					}),
				}),
			}),
			10: pair(2, func(name, value string) error { c.Context[name] = value; return nil }), // context_extensions
		}),
	})
	if err != nil {
		return Check{}, err
	}
	for _, one := range []struct{ field, name, value string }{{"http.method", ":method", c.Method}, {"http.path", ":path", c.Target}, {"http.host", ":authority", c.Host}} {
		if one.value == "" {
			return Check{}, errors.New(one.field + " is missing")
		}
		if said, ok := pseudo[one.name]; ok && said != one.value {
			return Check{}, fmt.Errorf("%s and the header %s differ", one.field, one.name)
		}
	}
	return c, nil
}

// header notes a header of the visitor.
func header(in map[string][]string, pseudo map[string]string, name, value string) error {
	if strings.HasPrefix(name, ":") {
		if _, twice := pseudo[name]; twice {
			return fmt.Errorf("the header %s is there twice", name)
		}
		pseudo[name] = value
		return nil
	}
	key := textproto.CanonicalMIMEHeaderKey(name)
	in[key] = append(in[key], value)
	return nil
}

// reader takes the value of one field.
type reader func(value []byte) error

// at reads those fields of a message for which there are readers.
func at(message []byte, readers map[protowire.Number]reader) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if read := readers[number]; read != nil {
			if kind != protowire.BytesType {
				return fmt.Errorf("field %d has another type", number)
			}
			value, _ := protowire.ConsumeBytes(message)
			if err := read(value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}

func within(readers map[protowire.Number]reader) reader {
	return func(value []byte) error { return at(value, readers) }
}

func text(to *string, name string) reader {
	seen := false
	return func(value []byte) error {
		if seen {
			return errors.New(name + " is there twice")
		}
		seen, *to = true, string(value)
		return nil
	}
}

// stamp reads a google.protobuf.Timestamp. One that is broken is no time: nothing is decided by it.
func stamp(to *time.Time) reader {
	return func(value []byte) error {
		var parts [3]uint64 // by their numbers: 1 are the seconds, 2 the nanoseconds
		for len(value) > 0 {
			number, kind, n := protowire.ConsumeTag(value)
			if n < 0 || kind != protowire.VarintType || number > 2 {
				return nil
			}
			var m int
			if parts[number], m = protowire.ConsumeVarint(value[n:]); m < 0 {
				return nil
			}
			value = value[n+m:]
		}
		if parts[1] > 0 && parts[1] < 1<<34 && parts[2] < 1e9 {
			*to = time.Unix(int64(parts[1]), int64(parts[2]))
		}
		return nil
	}
}

// pair reads a name in field 1 and its value in field 2 or, for raw values, also in another one.
func pair(raw protowire.Number, take func(name, value string) error) reader {
	return func(entry []byte) error {
		var name, value string
		to := func(s *string) reader { return func(v []byte) error { *s = string(v); return nil } }
		if err := at(entry, map[protowire.Number]reader{1: to(&name), 2: to(&value), raw: to(&value)}); err != nil {
			return err
		}
		return take(name, value)
	}
}

// Field is a header of an answer.
type Field struct {
	Name, Value string
	Added       bool // beside others of the name, not in their place
}

// Allow returns the CheckResponse that lets the request through. Envoy sets toOrigin at the request, then removes the headers
// named by remove, and adds toVisitor to the answer of the origin.
func Allow(toOrigin, toVisitor []Field, remove []string) []byte {
	var ok []byte
	for _, f := range toOrigin {
		ok = appendField(ok, 2, f)
	}
	for _, name := range remove {
		ok = protowire.AppendString(protowire.AppendTag(ok, 5, protowire.BytesType), name)
	}
	for _, f := range toVisitor {
		ok = appendField(ok, 6, f)
	}
	return append(appendStatus(OK), bytesField(3, ok)...)
}

// Deny returns the CheckResponse with which Envoy answers the visitor itself. The body has to be UTF-8.
func Deny(status int, fields []Field, body []byte) []byte {
	denied := bytesField(1, varintField(1, uint64(status)))
	for _, f := range fields {
		denied = appendField(denied, 2, f)
	}
	denied = append(denied, bytesField(3, body)...)
	return append(appendStatus(PermissionDenied), bytesField(2, denied)...)
}

func appendStatus(code uint64) []byte { return bytesField(1, varintField(1, code)) }

// appendField adds a HeaderValueOption. Older releases of Envoy read append, newer ones append_action.
func appendField(out []byte, number protowire.Number, f Field) []byte {
	value := append(bytesField(1, []byte(f.Name)), bytesField(2, []byte(f.Value))...)
	option := bytesField(1, value)
	if f.Added {
		option = append(option, bytesField(2, varintField(1, 1))...) // append: true; append_action: APPEND_IF_EXISTS_OR_ADD is 0
	} else {
		option = append(option, varintField(3, 2)...) // append_action: OVERWRITE_IF_EXISTS_OR_ADD
	}
	return append(out, bytesField(number, option)...)
}

func bytesField(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func varintField(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}
