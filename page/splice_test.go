package page

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// unzip decodes what AppendPage compressed, with its checksum and length.
func unzip(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// views calls f for every state, language and variant.
func views(f func(name string, v View)) {
	for _, language := range anteroom.Languages {
		for _, s := range States() {
			f(language+" "+s.Name, View{Decision: s.Decision, Language: language})
			f(language+" "+s.Name+" returning", View{Decision: s.Decision, Language: language, Returning: true})
			f(language+" "+s.Name+" paused", View{Decision: s.Decision, Language: language, Paused: true})
		}
	}
}

func TestGzipIsThePlainPage(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	before := []byte("kept")
	views(func(name string, v View) {
		plain := AppendPage(nil, &v, false)
		zipped, ok := bytes.CutPrefix(AppendPage(before, &v, true), before)
		if !ok {
			t.Fatalf("%s: the page overwrote what stood before it", name)
		}
		if !bytes.Equal(unzip(t, zipped), plain) {
			t.Errorf("%s: the compressed page differs from the plain one", name)
		}
	})
}

// Other decoders are stricter or laxer than Go's in their own ways. Those that this machine
// has must agree; Go's, above, always runs.
func TestOtherDecodersAgree(t *testing.T) {
	v := View{Decision: States()[0].Decision, Language: "th-TH"}
	plain, zipped := AppendPage(nil, &v, false), AppendPage(nil, &v, true)
	for _, command := range [][]string{
		{"gunzip", "-c"},
		{"python3", "-c", "import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))"},
		{"node", "-e", "process.stdout.write(require('zlib').gunzipSync(require('fs').readFileSync(0)))"},
	} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		run := exec.Command(path, command[1:]...)
		run.Stdin = bytes.NewReader(zipped)
		out, err := run.Output()
		if err != nil || !bytes.Equal(out, plain) {
			t.Errorf("%s: %v, %d bytes, want %d", command[0], err, len(out), len(plain))
		}
	}
}

func TestChecksumsCombine(t *testing.T) {
	text := []byte(strings.Repeat("a waiting room ", 700))
	for _, cut := range []int{0, 1, 2, 255, 4096, len(text)} {
		a, b := crc32.ChecksumIEEE(text[:cut]), crc32.ChecksumIEEE(text[cut:])
		if got, want := multiply(shiftOf(len(text)-cut), a)^b, crc32.ChecksumIEEE(text); got != want {
			t.Errorf("cut at %d: %08x, want %08x", cut, got, want)
		}
	}
}

// A hole that outgrows a stored block is cut, and the page still decodes.
func TestAnOversizedHoleStaysDecodable(t *testing.T) {
	doc := document{newDeflater().text("before "), {hole: 1}, newDeflater().text(" after")}
	out := doc.appendGzip(nil, func(dst []byte, _ hole) []byte { return append(dst, make([]byte, 70_000)...) })
	if n := len(unzip(t, out)); n != len("before ")+maxStored+len(" after") {
		t.Errorf("%d bytes", n)
	}
}

// The first flight of a connection holds about 14 kB; the issue asks for 8.
func TestPagesAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const most = 8 << 10
	largest, name := 0, ""
	views(func(n string, v View) {
		for _, v.Unsent = range []bool{false, true} {
			if size := len(AppendPage(nil, &v, true)); size > largest {
				largest, name = size, n
			}
		}
	})
	if largest > most {
		t.Errorf("%s has %d bytes compressed, at most %d", name, largest, most)
	}
	press := newDeflater()
	if n := len(press.text(bare("asset/page.js")).deflated); n > 2816 {
		t.Errorf("the script has %d bytes compressed, at most 2816", n)
	}
	t.Logf("largest: %s, %d bytes", name, largest)
}

func BenchmarkPage(b *testing.B) {
	v := View{Decision: States()[0].Decision}
	for _, c := range []struct {
		name string
		gzip bool
	}{{"gzip", true}, {"plain", false}} {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendPage(buf[:0], &v, c.gzip)
			}
			b.ReportMetric(float64(len(buf)), "B/page")
		})
	}
}
