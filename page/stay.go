package page

import (
	"html"
	"strconv"
	"time"
)

// stay is the script by which a page beside the waiting page stays in line, where a stream is to be had; otherwise it is empty. query is
// that of the address at which the visitor waits. The page comes back by the pair again, if that is not empty, when the stream ends
// and after a time, if that is not zero.
func stay(v View, query, again string, ends time.Duration) string {
	if !v.Decision.Stream {
		return ""
	}
	data := func(name, value string) string { return ` data-` + name + `="` + value + `"` }
	script := `<script` + data("here", "?"+html.EscapeString(query)) + data("stream", "?"+withQuery(query, streamQuery)) + data("status", "?"+withQuery(query, statusQuery)) +
		data("refresh", strconv.Itoa(max(1, RefreshSeconds(&v)))) + data("pause", strconv.Itoa(pauseOf(v)))
	if again != "" {
		script += data("again", "?"+withQuery(query, again))
	}
	if ends > 0 {
		script += data("ends", strconv.Itoa(int(ends/time.Second)))
	}
	return script + `>` + library().stay + `</script>`
}

// pauseOf is how long a page with a stream may go without asking, in seconds, as in page.js.
func pauseOf(v View) int {
	d := &v.Decision
	if d.KeptUntil == 0 {
		return 60
	}
	return int(min(time.Minute, max(time.Second, d.KeptUntil.Sub(d.At)/2)) / time.Second)
}
