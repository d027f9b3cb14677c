package rules

import "strings"

// pathField is the field whose comparisons do not depend on how a path is encoded.
const pathField = "http.request.uri.path"

// anySpelling is a comparison of the path with texts. A request has a reading of its path as it
// was sent and one that is decoded, and a rule must match both. So that "/caf%C3%A9" and "/café"
// in a rule mean the same, the comparison holds if it does for the reading itself or for
// [unescaped] path and texts. It never holds less often than without that, so "not" and "ne"
// let no request through that waited.
type anySpelling struct {
	asIs, unescaped boolNode
	always          bool // the texts have other spellings too, and not only some paths
}

func (n anySpelling) truth(r *Request, i int) bool {
	return n.asIs.truth(r, i) || (n.always || strings.Contains(r.Path, "%")) && n.unescaped.truth(r, i)
}

var unescapedPath = strField(func(r *Request) (string, bool) {
	if r.plainOf != r.Path {
		r.plainOf, r.plain = r.Path, unescaped(r.Path)
		r.spend(len(r.Path) / 4)
	}
	return r.plain, true
})

// spelled returns the comparison that compare makes of the field and of texts; if the field is
// the path, for all its spellings.
func (p *parser) spelled(left value, texts []string, compare func(of strNode, texts []string) boolNode) boolNode {
	asIs := compare(left.s, texts)
	if p.written(left) != pathField {
		return asIs
	}
	plain, differs := make([]string, len(texts)), false
	for i, t := range texts {
		plain[i] = unescaped(t)
		differs = differs || plain[i] != t
	}
	return anySpelling{asIs, compare(unescapedPath, plain), differs}
}

// Bytes that no request has in its path stand for an escaped slash and an escaped percent sign,
// which are not the same as unescaped ones, and come before the digits of an escape that
// nobody needs.
const (
	escapedSlash   = 0
	escapedPercent = 1
	needless       = 2
)

// unescaped decodes the escapes of a path once, except those of letters and other characters that
// browsers never escape: some origins do not read them. A percent sign that begins no escape counts
// as an escaped one.
func unescaped(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			c = escapedPercent
			if i+2 < len(path) {
				if v, ok := hex(path[i+1 : i+3]); ok {
					i += 2
					switch c = byte(v); c {
					case '/':
						c = escapedSlash
					case '%':
						c = escapedPercent
					default:
						if isWordByte(c) || c == '-' || c == '~' {
							b, c, i = append(b, needless), path[i-1], i-1
						}
					}
				}
			}
		}
		b = append(b, c)
	}
	return string(b)
}
