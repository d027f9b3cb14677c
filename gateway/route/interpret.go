package route

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
)

// maxInterpretations bounds the ways in which one path may be read. Paths that people
// use, addresses inside addresses included, stay below twenty; beyond the bound the path
// was made to be misread and is refused.
const maxInterpretations = 64

// Interpretations returns the ways in which an origin may read the path of a request
// target, the raw path first, without repetition. The target is what stood on the request
// line: "/path?query", or the absolute form; the query is cut off.
//
// The set is made in three rounds, before any decoding, after decoding once and after
// decoding twice. In each round every path made so far is also
//
//   - cut at "#", and at "?" and NUL when they came out of the decoding,
//   - freed of overlong UTF-8, fullwidth forms and other look-alikes of ASCII,
//   - read with "\" as "/",
//   - freed of ";parameters" in each segment,
//   - read with runs of slashes as one slash,
//   - freed of dot segments (RFC 3986 section 5.2.4),
//   - freed of dot segments, "%2e" counting as a dot (WHATWG URL).
//
// Case is not in the set: [Table.Lookup] ignores it while matching. A gate asks whether
// any member is covered, an exception from it must ask whether all are.
//
// [ErrTarget]: not a path, a malformed escape, a control byte raw or decoded once, or more
// than 64 interpretations.
func Interpretations(target string) ([]string, error) {
	return AppendInterpretations(nil, target)
}

// AppendInterpretations appends the [Interpretations] of a target to dst. A path that has only
// one, which is nearly every path, costs no allocation beyond that of dst.
func AppendInterpretations(dst []string, target string) ([]string, error) {
	p, err := pathOf("", target)
	if err != nil {
		return dst, err
	}
	if isPlain(p) {
		return append(dst, p), nil
	}
	all, err := interpret(p)
	return append(dst, all...), err
}

// interpret is for paths that are not plain.
func interpret(p string) ([]string, error) {
	once, err := decodeStrict(p)
	if err != nil {
		return nil, err
	}
	if i := strings.IndexFunc(once, isControl); i >= 0 {
		return nil, badTarget("it has a control byte")
	}
	all := []string{p}
	for round := range 3 {
		if round > 0 {
			all = add(all, decode)
		}
		before := len(all)
		for _, read := range readings {
			if all = add(all, read); len(all) > maxInterpretations {
				return nil, badTarget("it can be read in too many ways")
			}
		}
		if len(all) == before && !slices.ContainsFunc(all, hasEscape) {
			break
		}
	}
	return all, nil
}

// readings are the steps of one round, in order. Each returns its argument when it has
// nothing to do.
var readings = [...]func(string) string{cut, plainForms, slashes, dropParameters, merge, dropDots, dropEncodedDots}

// add appends what f makes of the members of all, without repetition. It stops soon after
// the bound: whoever sees more than the bound refuses.
func add(all []string, f func(string) string) []string {
	for i, n := 0, len(all); i < n && len(all) <= maxInterpretations; i++ {
		if s := f(all[i]); s != all[i] && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// pathOf cuts the path out of a request target. The authority of an absolute form must be
// the host, unless host is empty.
func pathOf(host, target string) (string, error) {
	p := target
	if !strings.HasPrefix(target, "/") {
		scheme, rest, found := strings.Cut(target, "://")
		if s := strings.ToLower(scheme); !found || s != "http" && s != "https" {
			return "", badTarget("it is not a path")
		}
		authority, end := rest, strings.IndexAny(rest, "/?#")
		p = "/"
		if end >= 0 {
			authority = rest[:end]
			if p = rest[end:]; p[0] != '/' {
				p = "/" + p
			}
		}
		if named, err := Host(authority); err != nil || host != "" && named != host {
			return "", badTarget("its authority is not the host")
		}
	}
	if i := strings.IndexByte(p, '?'); i >= 0 {
		p = p[:i]
	}
	if len(p) > anteroom.MaxTargetBytes {
		return "", badTarget("its path has more than 8 KiB")
	}
	return p, nil
}

// isPlain reports whether every reader agrees on p, case aside.
func isPlain(p string) bool {
	for i := range len(p) {
		switch c := p[i]; {
		case c == '/':
			if i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.' && beginsWithDots(p[i+1:])) {
				return false
			}
		case c <= ' ', c >= 0x7f, c == '%', c == '\\', c == ';', c == '#', c == '?':
			return false
		}
	}
	return true
}

func beginsWithDots(p string) bool {
	segment, _, _ := strings.Cut(p, "/")
	return dots(segment, false) > 0
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func hasEscape(p string) bool { return strings.IndexByte(p, '%') >= 0 }

// decodeStrict is decode for the client's own spelling, where a "%" must begin an escape.
func decodeStrict(p string) (string, error) {
	for i := range len(p) {
		if p[i] == '%' && !isEscape(p[i:]) {
			return "", badTarget("it has a malformed escape")
		}
	}
	return decode(p), nil
}

// decode replaces the escapes of p; what is not an escape stays.
func decode(p string) string {
	if !hasEscape(p) {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && isEscape(p[i:]) {
			out = append(out, unhex(p[i+1])<<4|unhex(p[i+2]))
			i += 2
			continue
		}
		out = append(out, p[i])
	}
	return string(out)
}

func isEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' && unhex(s[1]) < 16 && unhex(s[2]) < 16
}

// unhex returns 255 for what is not a hexadecimal digit.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func cut(p string) string {
	if i := strings.IndexAny(p, "#?\x00"); i >= 0 {
		return p[:i]
	}
	return p
}

func slashes(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// dropParameters removes from each segment what follows a ";".
func dropParameters(p string) string {
	if strings.IndexByte(p, ';') < 0 {
		return p
	}
	out := make([]byte, 0, len(p))
	inside := false
	for i := range len(p) {
		switch p[i] {
		case ';':
			inside = true
		case '/':
			inside = false
		}
		if !inside {
			out = append(out, p[i])
		}
	}
	return string(out)
}

func merge(p string) string {
	if !strings.Contains(p, "//") {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := range len(p) {
		if p[i] != '/' || i == 0 || p[i-1] != '/' {
			out = append(out, p[i])
		}
	}
	return string(out)
}

func dropDots(p string) string { return removeSegments(p, false) }

func dropEncodedDots(p string) string {
	if !hasEscape(p) {
		return p
	}
	return removeSegments(p, true)
}

// removeSegments removes the segments "." and "..", the latter with the segment before.
// Empty segments count as segments.
func removeSegments(p string, encoded bool) string {
	if !strings.HasPrefix(p, "/") {
		return p
	}
	out := make([]byte, 0, len(p))
	found := false
	for rest, more := p[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch dots(segment, encoded) {
		case 2:
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			fallthrough
		case 1:
			if found = true; !more {
				out = append(out, '/')
			}
		default:
			out = append(append(out, '/'), segment...)
		}
	}
	if !found {
		return p
	}
	return string(out)
}

// dots returns how many dots a segment consists of, or 0 when there is something else in
// it or more than two. With encoded, "%2e" is a dot.
func dots(segment string, encoded bool) int {
	n := 0
	for i := 0; i < len(segment); n++ {
		switch {
		case n == 2:
			return 0
		case segment[i] == '.':
			i++
		case encoded && isEscape(segment[i:]) && unhex(segment[i+1]) == 2 && unhex(segment[i+2]) == 0xe:
			i += 3
		default:
			return 0
		}
	}
	return n
}

// plainForms replaces what a lenient decoder or a Windows code page reads as an ASCII
// character: overlong UTF-8, fullwidth forms (U+FF01 to U+FF5E), the other slashes,
// backslashes and dots.
func plainForms(p string) string {
	if isASCII(p) {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); {
		if c, n := overlong(p[i:]); n > 0 {
			out, i = append(out, c), i+n
			continue
		}
		r, n := utf8.DecodeRuneInString(p[i:])
		switch {
		case r >= 0xff01 && r <= 0xff5e:
			out = append(out, byte(r-0xff01+'!'))
		case r == 0x2044 || r == 0x2215:
			out = append(out, '/')
		case r == 0x2216 || r == 0x29f5 || r == 0xfe68:
			out = append(out, '\\')
		case r == 0x2024 || r == 0x3002 || r == 0xfe52 || r == 0xff61:
			out = append(out, '.')
		case r == 0x2025:
			out = append(out, ".."...)
		default:
			out = append(out, p[i:i+n]...)
		}
		i += n
	}
	return string(out)
}

// overlong returns the ASCII character that p begins with in two, three or four bytes,
// and how many those are; 0 when it does not.
func overlong(p string) (byte, int) {
	n := 0
	switch {
	case p[0] == 0xc0 || p[0] == 0xc1:
		n = 2
	case p[0] == 0xe0:
		n = 3
	case p[0] == 0xf0:
		n = 4
	}
	if n == 0 || len(p) < n {
		return 0, 0
	}
	v := rune(p[0] & 1) // of the lead bytes above only 0xc1 carries a bit
	for _, c := range []byte(p[1:n]) {
		if c&0xc0 != 0x80 {
			return 0, 0
		}
		v = v<<6 | rune(c&0x3f)
	}
	if v >= utf8.RuneSelf {
		return 0, 0
	}
	return byte(v), n
}
