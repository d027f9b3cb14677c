package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

var update = flag.Bool("update", false, "write the golden figures")

func small(method anteroom.QueueingMethod, algorithm string, excess float64) *sim.Result {
	w := world{method: method, algorithm: algorithm, people: 150, length: 4 * time.Minute, seats: 20, perMinute: 30, sites: 3, excess: excess, seed: 3}
	r := w.result()
	r.Scenario.Name = "small sale"
	return r
}

// family is one of everything: both methods and all algorithms.
func family() []*sim.Result {
	return []*sim.Result{small(anteroom.FIFO, sim.Anteroom, 0), small(anteroom.Random, sim.Anteroom, 0), small(anteroom.FIFO, sim.Ideal, 0),
		small(anteroom.FIFO, sim.Counters, 0.1), small(anteroom.FIFO, sim.Even, 0.2), small(anteroom.FIFO, sim.Adapted, 0.4)}
}

func write(t testing.TB, f Figure, format chart.Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, f := range Of(family()) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			got := write(t, f, chart.SVG)
			file := filepath.Join("testdata", f.Name+".svg")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; look at it with go test ./sim/figure -update and git diff", file)
			}
		})
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	fifo := func() *sim.Result { return &sim.Result{Algorithm: sim.Anteroom} }
	random := func() *sim.Result {
		r := fifo()
		r.Scenario.QueueingMethod = anteroom.Random
		return r
	}
	by := func(algorithm string) *sim.Result { return &sim.Result{Algorithm: algorithm} }
	sited := fifo()
	sited.Points = []sim.Point{{Sites: []int32{1, 2}}}
	other := by(sim.Even)
	other.Scenario.Name = "other"
	pass := fifo()
	pass.Scenario.QueueingMethod = anteroom.Passthrough
	for _, c := range []struct {
		name    string
		results []*sim.Result
		want    string
	}{
		{"nothing", nil, ""},
		{"nil", []*sim.Result{nil, nil}, ""},
		{"fifo", []*sim.Result{fifo()}, "load wait-by-arrival wait-heat announced idle"},
		{"no algorithm said", []*sim.Result{by("")}, "load wait-by-arrival wait-heat announced idle"},
		{"passthrough", []*sim.Result{pass}, "load wait-by-arrival wait-heat idle"},
		{"sites", []*sim.Result{sited}, "load wait-by-arrival wait-heat announced idle sites"},
		{"seeds of the same", []*sim.Result{fifo(), fifo()}, "load wait-by-arrival wait-heat announced idle"},
		{"fifo and random", []*sim.Result{fifo(), nil, random()}, "load-fifo load-random wait-by-arrival wait-heat announced-fifo idle-fifo announced-random idle-random"},
		{"algorithms", []*sim.Result{by(sim.Even), fifo()}, "load wait-by-arrival wait-heat announced idle algorithms"},
		{"other scenario", []*sim.Result{fifo(), other}, "load wait-by-arrival wait-heat announced idle"},
		{"baseline alone", []*sim.Result{by(sim.Even)}, "load wait-by-arrival wait-heat announced idle"},
		{"unknown algorithm", []*sim.Result{by("mine"), fifo()}, "load wait-by-arrival wait-heat announced idle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, f := range Of(c.results) {
				names = append(names, f.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("figures\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// TestDocumentedOrder: whatever the order of the results, the product comes first.
func TestDocumentedOrder(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range comparable(family()) {
		got = append(got, r.Algorithm)
	}
	if !slices.Equal(got, sim.Algorithms) {
		t.Errorf("order %q, want %q", got, sim.Algorithms)
	}
}

// TestPNG: twice as many pixels each way, opaque, and the same bytes each time.
func TestPNG(t *testing.T) {
	t.Parallel()
	for _, f := range Of(family()) {
		if !slices.Contains([]string{"load-fifo", "wait-heat", "algorithms"}, f.Name) {
			continue // the others use the same marks
		}
		b := write(t, f, chart.PNG)
		if f.Name == "wait-heat" && !bytes.Equal(b, write(t, f, chart.PNG)) {
			t.Errorf("%s: differs from run to run", f.Name)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if size := img.Bounds().Size(); size.X != 2*f.Width || size.Y != 2*f.Height || f.Width != 900 {
			t.Errorf("%s: %v, want twice %d x %d", f.Name, size, f.Width, f.Height)
		}
		if _, _, _, a := img.At(0, 0).RGBA(); a != 0xffff {
			t.Errorf("%s: the ground is not opaque", f.Name)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	f := Of([]*sim.Result{{}})[0]
	if err := f.Write(io.Discard, "gif"); err == nil || !strings.Contains(err.Error(), `no format "gif"; use "png" or "svg"`) {
		t.Errorf("error %v", err)
	}
	if err := (Figure{Name: "mine"}).Write(io.Discard, chart.SVG); err == nil {
		t.Error("a figure of one's own was drawn")
	}
	full := errors.New("disk full")
	for _, format := range chart.Formats {
		if err := f.Write(failing{full}, format); !errors.Is(err, full) {
			t.Errorf("%s: error %v, want that of the writer", format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

const hostile = `</text><script>alert("x")</script>&amp;` + "\x00\x1b[31m\u202e\ufffe" + `style="font-family:Liberation Sans;font-variant:none;font-weight:bold;font-style:normal;" <g transform="`

// strange results that a picture must survive.
func strange() map[string]*sim.Result {
	point := small(anteroom.FIFO, sim.Anteroom, 0)
	point.Points, point.Visits = point.Points[:1], point.Visits[:1]

	named := small(anteroom.FIFO, sim.Anteroom, 0)
	named.Scenario.Name = strings.Repeat(hostile, 20)
	named.Algorithm = ""
	named.Places = []string{hostile, strings.Repeat("W", 300), ""}

	odd := small(anteroom.FIFO, sim.Anteroom, 0)
	for i := range odd.Points {
		p := &odd.Points[i]
		p.Idle = []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300}[i%5]
		p.Active, p.Waiting, p.Limit, p.Rate = math.MaxInt, -i, math.MaxInt, math.MinInt
		p.At = []time.Duration{math.MaxInt64, math.MinInt64, 0}[i%3]
		p.Sites = []int32{math.MaxInt32, math.MinInt32, int32(i)}[:i%4]
	}
	for i := range odd.Visits {
		odd.Visits[i] = sim.Visit{Arrived: math.MinInt64, Admitted: math.MaxInt64, Left: math.MaxInt64, Told: math.MaxInt64, TellAt: time.Duration(i), Told25: 1, Told75: math.MaxInt64}
	}
	n := &odd.Numbers
	n.Arrived, n.Admitted, n.Left = math.MaxInt, math.MinInt, 1
	n.EtaBias, n.EtaError, n.EtaWithin = math.NaN(), math.Inf(1), math.Inf(-1)
	n.Idle, n.OverActive, n.Premature, n.LotteryRank = math.NaN(), math.Inf(1), 1e300, math.NaN()
	n.LineEmpty, n.WaitP50, n.IdleP95 = math.MinInt64, math.MaxInt64, math.MinInt64
	odd.Ran, odd.Scenario.Length = math.MaxInt64, math.MinInt64

	large := &sim.Result{Algorithm: sim.Anteroom}
	large.Scenario.Length = sim.MaxLength
	large.Numbers.Arrived = sim.MaxVisitors
	for i := range 20_000 {
		at := time.Duration(i) * sim.MaxLength / 20_000
		large.Points = append(large.Points, sim.Point{At: at, Active: 1_000_000 - i%7, Waiting: i, LastMinute: i % 50_000, Limit: 1_000_000, Rate: 50_000, Idle: float64(i % 3)})
	}
	many := make([]int32, sim.MaxSites)
	for i := range many {
		many[i] = int32(i)
	}
	for i := 0; i < len(large.Points); i += 100 {
		large.Points[i].Sites = many
	}
	for i := range sim.MaxVisits {
		at := time.Duration(i) * sim.MaxLength / sim.MaxVisits
		large.Visits = append(large.Visits, sim.Visit{Arrived: at, Admitted: at + time.Hour, Shown: true, Told: time.Hour, TellAt: at, Told25: time.Minute, Told75: 2 * time.Hour})
	}

	still := small(anteroom.FIFO, sim.Anteroom, 0)
	for i := range still.Visits {
		still.Visits[i] = sim.Visit{Arrived: still.Visits[i].Arrived}
	}
	return map[string]*sim.Result{"empty": {}, "one point": point, "hostile names": named, "odd numbers": odd, "large": large, "nobody admitted": still}
}

var textTag = regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)" font-size="([\d.]+)"( font-weight="bold")?`)

// TestStrange draws what can go wrong, under both methods and as algorithms: the SVG is well
// formed, holds numbers only, nothing of a name gets out of its text, and every text lies
// within the picture.
func TestStrange(t *testing.T) {
	t.Parallel()
	for name, r := range strange() {
		random, even := *r, *r
		random.Scenario.QueueingMethod = anteroom.Random
		even.Algorithm = sim.Even
		for _, f := range Of([]*sim.Result{r, &random, &even}) {
			t.Run(name+" "+f.Name, func(t *testing.T) {
				t.Parallel()
				inPicture(t, f)
				if name == "odd numbers" && f.Name == "load-fifo" {
					write(t, f, chart.PNG)
				}
			})
		}
	}
	for _, f := range Of(family()) {
		inPicture(t, f)
	}
}

// inPicture checks an SVG and returns its texts.
func inPicture(t testing.TB, f Figure) []string {
	t.Helper()
	svg := write(t, f, chart.SVG)
	if len(svg) > 1<<20 {
		t.Errorf("%s: %d bytes", f.Name, len(svg))
	}
	if bad := regexp.MustCompile(`NaN|Inf\b|e[+-]?\d+[,"LZ]|style="font-family`).Find(svg); bad != nil {
		t.Errorf("%s: holds %q", f.Name, bad)
	}
	tags := textTag.FindAllSubmatch(svg, -1)
	var texts []string
	d := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: not well formed: %v", f.Name, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains([]string{"svg", "title", "path", "circle", "text"}, token.Name.Local) {
				t.Errorf("%s: has an element %s", f.Name, token.Name.Local)
			}
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
	if len(texts) != len(tags) {
		t.Fatalf("%s: %d texts, %d tags known to the test", f.Name, len(texts), len(tags))
	}
	for i, tag := range tags {
		x, _ := strconv.ParseFloat(string(tag[1]), 64)
		y, _ := strconv.ParseFloat(string(tag[2]), 64)
		size, _ := strconv.ParseFloat(string(tag[3]), 64)
		right := x + chart.Style{Size: size, Bold: len(tag[4]) > 0}.Wide(texts[i])
		if x < 0 || right > float64(f.Width) || y < size*0.7 || y > float64(f.Height)-2 {
			t.Errorf("%s: %q leaves the picture: x %.0f to %.0f, y %.0f", f.Name, texts[i], x, right, y)
		}
	}
	return texts
}

// TestSaysWhy: a figure without data says so.
func TestSaysWhy(t *testing.T) {
	t.Parallel()
	random := &sim.Result{Algorithm: sim.Anteroom}
	random.Scenario.QueueingMethod = anteroom.Random
	even := &sim.Result{Algorithm: sim.Even}
	for _, f := range Of([]*sim.Result{{Algorithm: sim.Anteroom}, random, even}) {
		if !slices.ContainsFunc(inPicture(t, f), func(s string) bool { return strings.Contains(s, "no data") }) {
			t.Errorf("%s does not say that there is no data", f.Name)
		}
	}
}
