package page

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/packed"
)

// readLanguages reads the files of lang, which are in the binary as lang.gz.
func readLanguages() (map[string]string, error) {
	out := map[string]string{}
	entries, err := os.ReadDir("lang")
	for _, e := range entries {
		raw, err := os.ReadFile("lang/" + e.Name())
		if err != nil {
			return nil, err
		}
		out[e.Name()] = string(raw)
	}
	return out, err
}

// TestMain packs the languages first, so that the golden pages are written with their words.
func TestMain(m *testing.M) {
	flag.Parse()
	if *update {
		read, err := readLanguages()
		packedLanguages = packed.PackFiles(read)
		if err = errors.Join(err, os.WriteFile("lang.gz", packedLanguages, 0o644)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestEveryLanguageSaysEverything(t *testing.T) {
	read, err := readLanguages()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(read, languages()) {
		t.Error("lang.gz is stale: run go test ./page -update")
	}
	if len(read) != len(anteroom.Languages) {
		t.Errorf("%d files, %d languages", len(read), len(anteroom.Languages))
	}
	// Words that languages share.
	same := map[string]bool{"Min": true, "Hour": true, "Range": true, "Ref": true, "Group": true, "Digits": true, "Begins": true}
	withValue := map[string]bool{"Less": true, "More": true, "Min": true, "Hour": true, "Kept": true, "Begins": true, "Ends": true, "Claim": true}
	english := reflect.ValueOf(*wordsOf("en-US"))
	for _, language := range anteroom.Languages {
		strict := json.NewDecoder(strings.NewReader(read[language+".json"]))
		strict.DisallowUnknownFields()
		var w words
		if err := strict.Decode(&w); err != nil {
			t.Errorf("%s: %v", language, err)
			continue
		}
		v := reflect.ValueOf(w)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			var texts []string
			switch value := v.Field(i).Interface().(type) {
			case string:
				texts = []string{value}
			case saying:
				texts = value[:]
			}
			for j, text := range texts {
				want := 0
				if withValue[name] {
					want = 1
				}
				if strings.Count(text, "{}") != want {
					t.Errorf("%s: %s: %q holds %d values, want %d", language, name, text, strings.Count(text, "{}"), want)
				}
				if strings.TrimSpace(text) != text && name != "Group" || text == "" && name != "Digits" {
					t.Errorf("%s: %s: %q is empty or has space around it", language, name, text)
				}
				if strings.ContainsAny(text, "<>&\"\n") {
					t.Errorf("%s: %s: %q holds markup", language, name, text)
				}
				other := english.Field(i)
				if other.Kind() == reflect.Array {
					other = other.Index(j)
				}
				if language != "en-US" && !same[name] && text == other.String() {
					t.Errorf("%s: %s: %q is English", language, name, text)
				}
			}
		}
		if n := len([]rune(w.Digits)); n != 0 && n != 10 {
			t.Errorf("%s: %d digits", language, n)
		}
	}
}

// As CLDR 45 writes them; the page's script takes them from the browser's copy.
func TestNumerals(t *testing.T) {
	for _, c := range []struct{ language, thousands, millions string }{
		{"en-US", "1,234", "1,234,567"}, {"es-ES", "1234", "1.234.567"}, {"de-DE", "1.234", "1.234.567"},
		{"fr-FR", "1\u202f234", "1\u202f234\u202f567"}, {"it-IT", "1234", "1.234.567"}, {"ja-JP", "1,234", "1,234,567"},
		{"ko-KR", "1,234", "1,234,567"}, {"pt-BR", "1.234", "1.234.567"}, {"zh-CN", "1,234", "1,234,567"}, {"zh-TW", "1,234", "1,234,567"},
		{"nl-NL", "1.234", "1.234.567"}, {"pl-PL", "1234", "1\u00a0234\u00a0567"}, {"id-ID", "1.234", "1.234.567"}, {"tr-TR", "1.234", "1.234.567"},
		{"ar-EG", "١٬٢٣٤", "١٬٢٣٤٬٥٦٧"}, {"ru-RU", "1\u00a0234", "1\u00a0234\u00a0567"}, {"fa-IR", "۱٬۲۳۴", "۱٬۲۳۴٬۵۶۷"},
		{"bg-BG", "1234", "1\u00a0234\u00a0567"}, {"hr-HR", "1.234", "1.234.567"}, {"cs-CZ", "1\u00a0234", "1\u00a0234\u00a0567"},
		{"da-DK", "1.234", "1.234.567"}, {"fi-FI", "1\u00a0234", "1\u00a0234\u00a0567"}, {"lt-LT", "1\u00a0234", "1\u00a0234\u00a0567"},
		{"ms-MY", "1,234", "1,234,567"}, {"nb-NO", "1\u00a0234", "1\u00a0234\u00a0567"}, {"ro-RO", "1.234", "1.234.567"},
		{"el-GR", "1.234", "1.234.567"}, {"he-IL", "1,234", "1,234,567"}, {"hi-IN", "1,234", "12,34,567"}, {"hu-HU", "1234", "1\u00a0234\u00a0567"},
		{"sr-BA", "1.234", "1.234.567"}, {"sk-SK", "1\u00a0234", "1\u00a0234\u00a0567"}, {"sl-SI", "1234", "1.234.567"},
		{"sv-SE", "1\u00a0234", "1\u00a0234\u00a0567"}, {"tl-PH", "1,234", "1,234,567"}, {"th-TH", "1,234", "1,234,567"},
		{"uk-UA", "1\u00a0234", "1\u00a0234\u00a0567"}, {"vi-VN", "1.234", "1.234.567"},
	} {
		n := wordsOf(c.language).numerals()
		if got := string(n.append(nil, 1234)); got != c.thousands {
			t.Errorf("%s: %q, want %q", c.language, got, c.thousands)
		}
		if got := string(n.append(nil, 1_234_567)); got != c.millions {
			t.Errorf("%s: %q, want %q", c.language, got, c.millions)
		}
		if got := string(n.append(nil, -5)); got != string(n.append(nil, 0)) {
			t.Errorf("%s: a negative number is %q", c.language, got)
		}
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		language string
		minutes  int64
		want     string
	}{
		{"en-US", 1, "1 min"}, {"en-US", 59, "59 min"}, {"en-US", 60, "1 h"}, {"en-US", 75, "1:15 h"}, {"en-US", 125, "2:05 h"}, {"en-US", 1440, "24 h"},
		{"ja-JP", 90, "1:30時間"}, {"ar-EG", 75, "١:١٥ س"}, {"fa-IR", 5, "۵ دقیقه"},
	} {
		if got := string(printed(c.language).appendSpan(nil, c.minutes)); got != c.want {
			t.Errorf("%s, %d minutes: %q, want %q", c.language, c.minutes, got, c.want)
		}
	}
}
