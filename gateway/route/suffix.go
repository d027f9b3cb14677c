package route

import (
	"strings"

	"github.com/anteroom/anteroom"
)

// maxExtensions is how many dots of a path's last segment are taken for the beginning of an
// extension. A route whose own last segment has as many dots is not covered with an extension.
const maxExtensions = 8

// windowsForm is p as Windows reads names of files: each segment ends before ":", where a stream's
// name begins ("/tickets::$DATA"), and before dots and spaces at its end ("/tickets.", "/tickets%20").
// It is no member of [Interpretations]: what is not a file may have a colon.
func windowsForm(p string) string {
	if strings.IndexByte(p, ':') < 0 && !strings.Contains(p, "./") && !strings.Contains(p, " /") &&
		!strings.HasSuffix(p, ".") && !strings.HasSuffix(p, " ") {
		return p
	}
	segments := strings.Split(p, "/")
	for i, s := range segments {
		s, _, _ = strings.Cut(s, ":")
		if s = strings.TrimRight(s, " "); s != "." && s != ".." {
			s = strings.TrimRight(s, ". ")
		}
		segments[i] = s
	}
	return dropDots(strings.Join(segments, "/"))
}

// frontScript is what WordPress, Laravel, Symfony, Magento and others call the script that serves all of their pages.
const frontScript = "/index.php/"

// frontForm is p without that script: "/index.php/tickets" is "/tickets" there, and "/shop/index.php/cart" is "/shop/cart". It
// is no member of [Interpretations]: rules may tell the two apart.
func frontForm(p string) string {
	if strings.IndexByte(p, '.') < 0 {
		return p
	}
	for i := range max(0, len(p)-len(frontScript)+1) {
		if p[i] == '/' && strings.EqualFold(p[i:i+len(frontScript)], frontScript) {
			return p[:i] + p[i+len(frontScript)-1:]
		}
	}
	return p
}

// findExtended returns the room with the longest route that path is, but for an extension of its
// last segment: Rails and Spring serve "/tickets.json" as they do "/tickets".
func (p *paths) findExtended(path string) (best *Match, most int) {
	if p == nil || p.segments == 0 {
		return nil, -1
	}
	most = -1
	if path = strings.TrimRight(path, "/"); strings.Count(path, "/") > p.segments {
		return nil, -1 // deeper than every route
	}
	from := strings.LastIndexByte(path, '/') + 2 // a name has a first character
	for range maxExtensions {
		if from >= len(path) {
			break
		}
		dot := strings.IndexByte(path[from:], '.')
		if dot < 0 {
			break
		}
		stem := path[:from+dot]
		var space [256]byte
		m, n := p.find(stem)
		if m != nil && m.Room.RouteSuffixes != anteroom.SuffixesIgnore && n > most && n == len(appendFold(space[:0], stem, n+1)) {
			best, most = m, n
		}
		from += dot + 1
	}
	return best, most
}
