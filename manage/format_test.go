package manage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

var update = flag.Bool("update", false, "rewrite testdata")

// fill sets every field that can be set, so that none is forgotten.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if _, isTime := v.Interface().(time.Time); isTime {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC)))
			return
		}
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(f)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	}
}

// TestStoredFormat pins the form in which rooms are stored: what a former version has written
// is read, whatever becomes of the names in the code. A field that goes or changes needs
// another documentVersion and a way from the old one; one that is added only -update.
func TestStoredFormat(t *testing.T) {
	t.Parallel()
	var room anteroom.Room
	fill(reflect.ValueOf(&room).Elem())
	room.Settings.Lanes = nil // made from room.Lanes
	want := roomDocument{header: header{documentVersion, 9}, Made: 3, Room: room, Page: "manage.page.a", EventPages: map[anteroom.EventID]string{"text": "manage.page.b"}}
	const name = "testdata/room.v1.json"
	if *update {
		data, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got roomDocument
	if err := decode(name, data, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("what was stored reads as something else:\n%+v\nwant\n%+v", got, want)
	}
}

// TestStoredIsWhatIsSet: a former version knows no members that came later, and refuses them. It can use every document that makes no use of
// them, stored or in a backup, as they are not in it then. What an event sets to nothing is set.
func TestStoredIsWhatIsSet(t *testing.T) {
	t.Parallel()
	none := 0
	want := roomDocument{header: header{documentVersion, 9}, Made: 3, Room: anteroom.Room{Name: "shop"}}
	want.Room.Events = []anteroom.Event{{Name: "sale", Overrides: anteroom.Overrides{TotalActiveUsers: &none}}}
	data, err := encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if is := `{"version":1,"seq":9,"made":3,"room":{"Name":"shop","Events":[{"Name":"sale","TotalActiveUsers":0}]}}`; string(data) != is {
		t.Errorf("stored as\n%s\nwant\n%s", data, is)
	}
	var got roomDocument
	if err := decode("a room", data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}

	var copied bytes.Buffer
	if err := furnished(t, memlink.New()).Backup(t.Context(), root, &copied, false); err != nil {
		t.Fatal(err)
	}
	text := must[[]byte](t)(io.ReadAll(must[*gzip.Reader](t)(gzip.NewReader(&copied))))
	if !bytes.Contains(text, []byte(`"NewUsersPerMinute"`)) || bytes.Contains(text, []byte(`"WebPush"`)) { // no room of these has set it
		t.Errorf("the backup:\n%s", text)
	}

	err = decode("a room", []byte(`{"version":1,"room":{"Colour":"red"}}`), &got)
	if err == nil || !strings.Contains(err.Error(), `it has "Colour", which this program does not know: it was written by another Anteroom`) {
		t.Error(err)
	}
}

// TestUnknownDocument: a store with documents of a later version is left alone.
func TestUnknownDocument(t *testing.T) {
	t.Parallel()
	link := memlink.New()
	furnished(t, link)
	link.Put(t.Context(), "manage.other.1", []byte(`{"version":1}`))
	if _, err := Open(t.Context(), Config{Link: link}); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Error(err)
	}
}
