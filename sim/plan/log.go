package plan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

const (
	maxLogLine = 64 << 10
	// maxPresent bounds the memory of a replay: visitors of the log whose absence is not over, some 40 bytes each.
	maxPresent = 2_000_000
	// lateLine is how much earlier than the first line another one may be: servers write a line when the answer is done.
	lateLine = 10 * time.Minute
)

// hit is a line of an access log.
type hit struct {
	at            time.Time
	client, agent string
	path          string
}

// pastLog makes flows of an access log, which it reads as a stream. A visitor is an address with a user agent; the first
// request, and the first after an absence, is an arrival.
func (b *builder) pastLog(at string, a arrival) []sim.Flow {
	in, ok := b.openBeside(at+".log", a.Log)
	if !ok {
		return nil
	}
	defer in.Close()
	at += ".log"
	faults := 0
	fault := b.faultsIn(at, filepath.Join(filepath.Dir(b.file), a.Log), &faults)
	r := replay{absence: a.Absence, most: maxPresent, last: map[uint64]int32{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 4096), maxLogLine)
	n := 0
	for faults < maxCSVFaults && lines.Scan() {
		n++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		h, err := readLine(text)
		if err == nil && within(h.path, a.Path) {
			err = r.add(h)
		}
		if err != nil {
			fault(n, 1, err.Error(), "a line of the combined log format, or a JSON object; see docs/simulate.md")
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		fault(n+1, 1, fmt.Sprintf("is longer than %d KiB", maxLogLine>>10), "a line for each request")
	case err != nil:
		b.cannotRead(at, a.Log, err)
		return nil
	case faults == 0 && len(r.arrivals) == 0:
		b.At(at, field.Quote(a.Log)+" has no request that counts", "check path, and that it is the right file")
		return nil
	}
	if faults > 0 {
		return nil
	}
	rows, width := r.rows()
	return b.flows(at, a, rows, width)
}

// replay counts the arrivals of a log.
type replay struct {
	absence  time.Duration
	most     int              // visitors whose absence is not over
	start    time.Time        // of the first line that counts
	last     map[uint64]int32 // second of the last request of each visitor, by hash
	arrivals []int32          // in each second since the start
}

func (r *replay) add(h hit) error {
	if len(r.arrivals) == 0 && len(r.last) == 0 {
		r.start = h.at
	}
	since := h.at.Sub(r.start)
	switch {
	case since < -lateLine:
		return fmt.Errorf("is %s before the first line: sort the log by time", field.Short(-since.Round(time.Second)))
	case since > sim.MaxLength:
		return errors.New("is more than a week after the first line: take the part of the log that is the sale")
	}
	second := int32(max(0, since) / time.Second)
	hash := fnv.New64a()
	io.WriteString(hash, h.client)
	hash.Write([]byte{0})
	io.WriteString(hash, h.agent)
	who := hash.Sum64()
	before, known := r.last[who]
	if !known && len(r.last) >= r.most {
		for who, before := range r.last {
			if r.over(before, second) {
				delete(r.last, who)
			}
		}
		if len(r.last) > r.most/4*3 { // else the next look would come too soon
			return fmt.Errorf("makes too many visitors within %s, of at most %d: take every tenth visitor, with a scale of 10, or a shorter absence", field.Short(r.absence), r.most)
		}
	}
	r.last[who] = max(before, second)
	if known && !r.over(before, second) {
		return nil
	}
	for int(second) >= len(r.arrivals) {
		r.arrivals = append(r.arrivals, 0)
	}
	r.arrivals[second]++
	return nil
}

// over reports whether a visitor who was last seen at a second has been absent at another one.
func (r *replay) over(before, second int32) bool {
	return time.Duration(second-before)*time.Second > r.absence
}

// rows returns the arrivals by the second, or by the shortest span of which a plan can have as many.
func (r *replay) rows() ([]row, time.Duration) {
	width := 1
	for len(r.arrivals)/width > sim.MaxFlows/2 { // a plan may have more arrivals
		width *= 10
	}
	var out []row
	for from := 0; from < len(r.arrivals); from += width {
		n := 0.0
		for _, k := range r.arrivals[from:min(from+width, len(r.arrivals))] {
			n += float64(k)
		}
		if n > 0 {
			out = append(out, row{time.Duration(from) * time.Second, n})
		}
	}
	return out, time.Duration(width) * time.Second
}

// within reports whether a path is the prefix or below it.
func within(path, prefix string) bool {
	prefix = strings.TrimRight(prefix, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (prefix == "" || rest == "" || rest[0] == '/')
}

// readLine reads a line of either format.
func readLine(line []byte) (hit, error) {
	if line[0] == '{' {
		return readJSON(line)
	}
	return readCombined(string(line))
}

const combinedTime = "02/Jan/2006:15:04:05 -0700"

// readCombined reads the combined log format of Apache and nginx, or the common one, which has no user agent. A virtual host
// with its port may stand before the address.
func readCombined(line string) (hit, error) {
	head, rest, closed := strings.Cut(line, `] "`) // a user's name may have brackets, too
	opened := strings.LastIndexByte(head, '[')
	words := strings.Fields(head[:max(0, opened)])
	if !closed || len(words) < 3 {
		return hit{}, fmt.Errorf("%s is not a line of a log", field.Quote(line))
	}
	stamp := head[opened+1:]
	at, err := time.Parse(combinedTime, stamp)
	if err != nil {
		return hit{}, fmt.Errorf("%s is not a time like [27/Nov/2026:10:00:00 +0100]", field.Quote(stamp))
	}
	h := hit{at: at, client: words[0]}
	if strings.Contains(h.client, ":") && !isAddress(h.client) { // a virtual host with its port
		h.client = words[1]
	}
	request, rest, ok := quoted(`"` + rest)
	if !ok {
		return hit{}, errors.New("has a request without a closing quote")
	}
	h.path = pathOf(request)
	if _, rest, ok = quoted(rest); ok {
		h.agent, _, _ = quoted(rest)
	}
	return h, nil
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// quoted returns the next text in quotes, and what follows it.
func quoted(s string) (text, rest string, ok bool) {
	_, s, ok = strings.Cut(s, `"`)
	for i := 0; ok && i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// pathOf returns the path of a request line or of a URL.
func pathOf(request string) string {
	if words := strings.Fields(request); len(words) > 1 {
		request = words[1]
	}
	if _, rest, absolute := strings.Cut(request, "://"); absolute {
		_, rest, _ = strings.Cut(rest, "/")
		request = "/" + rest
	}
	return request[:strings.IndexAny(request+"?", "?#")]
}

// The names that servers give the members of a line in JSON: nginx by custom, Caddy, Traefik, Envoy, HAProxy and load balancers.
var (
	timeNames   = []string{"time", "ts", "timestamp", "@timestamp", "time_iso8601", "time_local", "msec", "start_time", "StartUTC"}
	clientNames = []string{"client_ip", "remote_ip", "remote_addr", "ClientHost", "client", "ip", "downstream_remote_address"}
	agentNames  = []string{"user_agent", "http_user_agent", "request_User-Agent", "agent"}
	pathNames   = []string{"uri", "request_uri", "path", "RequestPath", "url", "request"}
)

// readJSON reads an object with a request, whose members have one of the names that servers use.
func readJSON(line []byte) (hit, error) {
	var all map[string]any
	if err := json.Unmarshal(line, &all); err != nil {
		return hit{}, fmt.Errorf("is not JSON: %w", err)
	}
	// Caddy has the request in an object of its own.
	if inside, ok := all["request"].(map[string]any); ok {
		delete(all, "request")
		for name, v := range inside {
			if _, taken := all[name]; !taken {
				all[name] = v
			}
		}
		if headers, ok := inside["headers"].(map[string]any); ok {
			if list, ok := headers["User-Agent"].([]any); ok && len(list) > 0 {
				all["user_agent"] = list[0]
			}
		}
	}
	text := func(names []string) string {
		for _, name := range names {
			if s, ok := all[name].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	h := hit{client: withoutPort(text(clientNames)), agent: text(agentNames), path: pathOf(text(pathNames))}
	if h.client == "" {
		return hit{}, fmt.Errorf("has no address of the client: %s", strings.Join(clientNames, ", "))
	}
	for _, name := range timeNames {
		if v, ok := all[name]; ok {
			if h.at, ok = moment(v); !ok {
				return hit{}, fmt.Errorf("has a %s that is not a time: %s", name, field.Quote(fmt.Sprint(v)))
			}
			return h, nil
		}
	}
	return hit{}, fmt.Errorf("has no time: %s", strings.Join(timeNames, ", "))
}

// withoutPort returns an address without its port, which differs with each connection.
func withoutPort(client string) string {
	if a, err := netip.ParseAddrPort(client); err == nil {
		return a.Addr().String()
	}
	return client
}

// moment reads a time as seconds or milliseconds since 1970, or as text.
func moment(v any) (time.Time, bool) {
	seconds, isNumber := v.(float64)
	if s, ok := v.(string); ok {
		for _, layout := range []string{time.RFC3339, combinedTime, time.DateTime} {
			if t, err := time.Parse(layout, s); err == nil {
				return t, true
			}
		}
		var err error
		seconds, err = strconv.ParseFloat(s, 64)
		isNumber = err == nil
	}
	if seconds > 1e11 {
		seconds /= 1000
	}
	if !isNumber || !(seconds >= 0 && seconds <= 9e9) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))), true
}
