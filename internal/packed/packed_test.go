package packed

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

func TestUnpackReturnsWhatWasPacked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", strings.Repeat("some words ", 10_000)} {
		member := Pack([]byte(text))
		if got := Unpack(member); !bytes.Equal(got, []byte(text)) {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
		if len(text) > 100 && len(member) > len(text)/50 {
			t.Errorf("%d bytes became %d when packed", len(text), len(member))
		}
	}
}

func TestADamagedMemberPanics(t *testing.T) {
	t.Parallel()
	member := Pack([]byte("words"))
	for _, damaged := range [][]byte{nil, []byte("words"), member[:len(member)-1], append(bytes.Clone(member[:len(member)-1]), member[len(member)-1]+1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes: no panic", len(damaged))
				}
			}()
			Unpack(damaged)
		}()
	}
}

func TestUnpackFilesReturnsThemByName(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a/b.json": "{\n\t\"a\": \"<ü&\"}", "c": ""}
	if got := UnpackFiles(PackFiles(files)); !maps.Equal(got, files) {
		t.Errorf("%q", got)
	}
}
