package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// unzip decodes what AppendPage compressed, with its checksum.
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

func TestGzipIsThePlainPage(t *testing.T) {
	for _, s := range States() {
		v := View{Decision: s.Decision}
		plain := AppendPage(nil, v, false)
		zipped := AppendPage(nil, v, true)
		if !bytes.Equal(unzip(t, zipped), plain) {
			t.Errorf("%s: the compressed page differs from the plain one", s.Name)
		}
		t.Logf("%s: %d plain, %d compressed", s.Name, len(plain), len(zipped))
	}
}

func BenchmarkPage(b *testing.B) {
	v := View{Decision: States()[0].Decision}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendPage(buf[:0], v, true)
	}
}

func BenchmarkJSON(b *testing.B) {
	v := View{Decision: States()[0].Decision}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendJSON(buf[:0], v)
	}
}
