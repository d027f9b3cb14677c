package exposition

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Config of a handler.
type Config struct {
	// Collect adds the series of one scrape. It runs for several scrapes at the same time.
	Collect func(*Scrape)
	// Former returns the name that a metric had before, empty for none; nil means that none had another. A scrape with the
	// query former=no leaves former names out.
	Former func(name string) string
	// AtOnce is how many scrapes are answered at the same time; further ones get 503.
	AtOnce int
}

// Handler returns the handler of scrapes. It answers in the format that Accept prefers, and compressed with gzip if the client
// can read that.
func Handler(cfg Config) http.Handler {
	running := make(chan struct{}, cfg.AtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			http.Error(w, "Limit of concurrent scrapes reached ("+strconv.Itoa(cfg.AtOnce)+"), try again later.", http.StatusServiceUnavailable)
			return
		}
		former := cfg.Former
		if r.URL.Query().Get("former") == "no" {
			former = nil
		}
		s := newScrape(negotiate(r.Header.Get("Accept")), former)
		cfg.Collect(s)
		w.Header().Set("Content-Type", s.format.contentType())
		to := io.Writer(w)
		if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a valid level
			defer zipped.Close()
			to = zipped
		}
		for _, piece := range s.pieces() {
			if _, err := to.Write(piece); err != nil {
				return // the client has left
			}
		}
	})
}

// maxAccept bounds how much of a header is read, in bytes.
const maxAccept = 2 << 10

// weighted calls f with every element of a header that has weights, and its weight, in the order of the header.
func weighted(header string, f func(element string, weight float64)) {
	for element := range strings.SplitSeq(header[:min(len(header), maxAccept)], ",") {
		weight := 1.0
		for param := range strings.SplitSeq(element, ";") {
			if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(param)), "q="); ok {
				v, err := strconv.ParseFloat(q, 64)
				if err != nil || !(v >= 0) {
					v = 0
				}
				weight = v
			}
		}
		f(strings.TrimSpace(element), weight)
	}
}

// negotiate returns the format that a client would like best; text for one that does not say.
func negotiate(accept string) format {
	var best format = text{}
	most := 0.0
	weighted(accept, func(element string, weight float64) {
		media, params, err := mime.ParseMediaType(element)
		if err != nil || weight <= most {
			return
		}
		var f format
		switch version := params["version"]; {
		case media == "application/vnd.google.protobuf" && params["proto"] == "io.prometheus.client.MetricFamily" && params["encoding"] == "delimited":
			f = protobuf{}
		case media == "application/openmetrics-text" && (version == "" || version == "0.0.1" || version == "1.0.0"):
			f = text{open: true}
		case (media == "text/plain" || media == "*/*") && (version == "" || version == "0.0.4"):
			f = text{}
		default:
			return
		}
		best, most = f, weight
	})
	return best
}

// accepts reports whether a header names a coding with a weight above 0.
func accepts(header, coding string) (ok bool) {
	weighted(header, func(element string, weight float64) {
		name, _, _ := strings.Cut(element, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			ok = weight > 0
		}
	})
	return ok
}
