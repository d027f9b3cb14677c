package exposition

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

var (
	plain   = New(Gauge, "x_plain", "A gauge: \\ \"quoted\"\non two lines.")
	labeled = New(Counter, "x_labeled_total", "A counter.", "zone", "name")
	shape   = New(Histogram, "x_shape_seconds", "A histogram.", "room")
	late    = New(Histogram, "x_late_seconds", "A histogram with negative values.")
	pauses  = New(Summary, "x_pauses_seconds", "A summary.")
)

// hostile are values of labels that could end a line, a label, or a message.
var hostile = []string{"", "shop", `a"b`, `a\b`, "a\nb", "} 1\nx_other 2", "ä\u2028", "\xff\xfe", "# EOF", `\n`, strings.Repeat("x", 300)}

func everything(s *Scrape) {
	s.Value(plain, 0)
	for i, word := range hostile {
		s.Value(labeled, float64(i)*1e6, word, "n")
	}
	s.Distribution(shape, &Distribution{Count: 7, Zero: 1, Sum: 12.5, Schema: 3, ZeroThreshold: 1e-6,
		Positive: []Bucket{{-3, 1}, {-2, 2}, {5, 1}, {6, 1}, {40, 1}}, Classic: []Classic{{0.5, 2}, {1, 4}, {10, 6}},
		Example: &Example{TraceID: "0af7651916cd43dd8448eb211c80319c", Value: 0.75, At: time.UnixMilli(1_800_000_000_500)}}, "a")
	s.Distribution(shape, &Distribution{Count: 1, Sum: 99, Schema: 3, ZeroThreshold: 1e-6, Positive: []Bucket{{53, 1}}, Classic: []Classic{{0.5, 0}, {1, 0}, {10, 0}},
		Example: &Example{TraceID: "beyond", Value: 99, At: time.UnixMilli(1_800_000_000_000)}}, "b")
	s.Distribution(shape, &Distribution{Schema: 3, ZeroThreshold: 1e-6, Classic: []Classic{{0.5, 0}}}, "none")
	s.Distribution(late, &Distribution{Count: 5, Zero: 1, Sum: -3, Schema: 3, ZeroThreshold: 1e-6, Positive: []Bucket{{1, 1}}, Negative: []Bucket{{0, 1}, {8, 2}}, Classic: []Classic{{-1, 3}, {1, 5}}})
	s.Summary(pauses, 3, 0.25, []Quantile{{0, 0.01}, {0.5, 0.05}, {1, 0.19}})
	s.Runtime()
	s.Process()
}

func written(f format, former func(string) string) string {
	s := newScrape(f, former)
	everything(s)
	return string(bytes.Join(s.pieces(), nil))
}

// families reads what was written as Prometheus's own library does.
func families(t *testing.T, raw string) (all []*dto.MetricFamily) {
	t.Helper()
	decoder := expfmt.NewDecoder(strings.NewReader(raw), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		f := new(dto.MetricFamily)
		if err := decoder.Decode(f); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
}

// TestFormatsAreThoseOfTheLibrary: what the protobuf says is, written as text and as OpenMetrics by Prometheus's own library, what we
// write.
func TestFormatsAreThoseOfTheLibrary(t *testing.T) {
	s := newScrape(protobuf{}, nil)
	everything(s)
	all := families(t, string(bytes.Join(s.pieces(), nil)))
	if len(all) < 30 {
		t.Fatalf("%d families", len(all))
	}
	for _, c := range []struct {
		ours   format
		theirs expfmt.FormatType
	}{{text{}, expfmt.TypeTextPlain}, {text{open: true}, expfmt.TypeOpenMetrics}} {
		var theirs bytes.Buffer
		encoder := expfmt.NewEncoder(&theirs, expfmt.NewFormat(c.theirs))
		for _, f := range all {
			if strings.HasPrefix(f.GetName(), "x_") {
				if err := encoder.Encode(f); err != nil {
					t.Fatal(err)
				}
			}
		}
		if closer, ok := encoder.(expfmt.Closer); ok {
			closer.Close()
		}
		ours, theirLines := strings.SplitAfter(written(c.ours, nil), "\n"), strings.SplitAfter(theirs.String(), "\n")
		i := 0
		for _, line := range ours {
			if name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "); !strings.HasPrefix(name, "x_") && line != "# EOF\n" {
				continue // figures of the process, which change
			}
			if i >= len(theirLines) || line != theirLines[i] {
				t.Fatalf("%T: we write\n%sthe library writes\n%s", c.ours, line, theirLines[min(i, len(theirLines)-1)])
			}
			i++
		}
		if i < 40 {
			t.Errorf("%d lines", i)
		}
	}
}

func TestNativeBuckets(t *testing.T) {
	for _, f := range families(t, written(protobuf{}, nil)) {
		if f.GetName() != "x_shape_seconds" {
			continue
		}
		h := f.Metric[0].Histogram
		var got []int64
		for _, s := range h.PositiveSpan {
			got = append(got, int64(s.GetOffset()), int64(s.GetLength()))
		}
		got = append(got, h.PositiveDelta...)
		want := []int64{-3, 2, 6, 2, 33, 1, 1, 1, -1, 0, 0}
		if len(got) != len(want) {
			t.Fatal(got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if h.GetSchema() != 3 || h.GetZeroCount() != 1 || h.GetZeroThreshold() != 1e-6 || h.Bucket[1].Exemplar.GetValue() != 0.75 || h.Bucket[1].Exemplar.Timestamp.AsTime().UnixMilli() != 1_800_000_000_500 {
			t.Error(h)
		}
		return
	}
	t.Error("no histogram")
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", -1: "-1", 0.25: "0.25", 1e21: "1e+21", 2147483648: "2.147483648e+09", math.Inf(1): "+Inf", math.Inf(-1): "-Inf"} {
		if got := string(text{}.number(nil, v)); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	if got := string(text{open: true}.number(nil, math.NaN())); got != "NaN" {
		t.Error(got)
	}
}

func TestNegotiation(t *testing.T) {
	const asked = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	const native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	for accept, want := range map[string]format{
		"": text{}, "*/*": text{}, "text/html": text{}, "text/plain": text{}, "nonsense;;;": text{}, "text/plain;version=0.0.4": text{},
		asked: text{open: true}, native: protobuf{}, native + ";q=0.7," + asked: protobuf{}, native + ";q=0.1," + asked: text{open: true},
		"application/openmetrics-text": text{open: true}, "application/openmetrics-text;version=9.9.9": text{}, "application/openmetrics-text;q=0": text{},
		"application/vnd.google.protobuf": text{}, native + ";q=nonsense": text{},
	} {
		if got := negotiate(accept); got != want {
			t.Errorf("%q gets %T, want %T", accept, got, want)
		}
		h := http.Header{"Accept": {accept}}
		theirs := expfmt.NegotiateAccept(h, expfmt.DefaultOpenMetricsAcceptedFormats()...).FormatType()
		if got := expfmt.Format(want.contentType()).FormatType(); got != theirs && !strings.Contains(accept, "q=nonsense") && !strings.Contains(accept, "q=0.1") && !strings.HasSuffix(accept, "q=0") {
			t.Errorf("%q gets %v, from the library %v", accept, got, theirs)
		}
	}
}

func TestHandler(t *testing.T) {
	hold, entered := make(chan struct{}), make(chan struct{}, 8)
	former := func(name string) string {
		if rest, ours := strings.CutPrefix(name, "x_"); ours {
			return "old_" + rest
		}
		return ""
	}
	h := Handler(Config{AtOnce: 1, Former: former, Collect: func(s *Scrape) {
		entered <- struct{}{}
		<-hold
		everything(s)
	}})
	get := func(target string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- get("/metrics") }()
	<-entered
	if w := get("/metrics"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a second one gets %d", w.Code)
	}
	close(hold)
	if body := (<-first).Body.String(); !strings.Contains(body, "\nold_plain 0\n") || !strings.Contains(body, "\n# HELP old_plain Deprecated: use x_plain.\n") || !strings.Contains(body, "\nx_plain 0\n") {
		t.Error("a name is missing")
	}
	if body := get("/metrics?former=no").Body.String(); strings.Contains(body, "old_") || !strings.Contains(body, "\nx_plain 0\n") {
		t.Error("former names are there although nobody wants them")
	}
	w := get("/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "Accept-Encoding", "gzip;q=0.5")
	if w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal("not compressed")
	}
	zipped, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families(t, string(raw)) {
		series[f.GetName()] = len(f.Metric)
	}
	if series["x_labeled_total"] != len(hostile) || series["old_labeled_total"] != len(hostile) {
		t.Error(series)
	}
	if w := get("/metrics", "Accept-Encoding", "gzip;q=0, br"); w.Header().Get("Content-Encoding") != "" {
		t.Error("compressed for a client that cannot read it")
	}
}

func TestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux says it
	}
	found := map[string]float64{}
	for _, f := range families(t, written(protobuf{}, nil)) {
		if m := f.Metric[0]; m.Gauge != nil {
			found[f.GetName()] = m.Gauge.GetValue()
		} else if m.Counter != nil {
			found[f.GetName()] = m.Counter.GetValue()
		}
	}
	for name, least := range map[string]float64{"process_resident_memory_bytes": 1 << 20, "process_virtual_memory_bytes": 1 << 20, "process_open_fds": 3, "process_max_fds": 10,
		"process_virtual_memory_max_bytes": 1 << 30, "process_cpu_seconds_total": 0, "go_goroutines": 1, "go_threads": 1, "go_memstats_heap_inuse_bytes": 1, "go_gc_gogc_percent": 1, "go_sched_gomaxprocs_threads": 1} {
		if v, ok := found[name]; !ok || v < least {
			t.Errorf("%s is %v", name, v)
		}
	}
	if start := found["process_start_time_seconds"]; math.Abs(float64(time.Now().Unix())-start) > 3600 {
		t.Errorf("started at %v", start)
	}
}
