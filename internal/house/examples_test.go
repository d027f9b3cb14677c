package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Commands of the documentation work as they stand: a secret's file is closed to other users, or Anteroom refuses it, and events do
// not lie in the past.
func TestCommandsOfTheDocumentationWork(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	block := regexp.MustCompile("(?s)```sh\n(.*?)```")
	secret := regexp.MustCompile(`anteroom cluster edge .*> |openssl .*> secret\n`)
	past := regexp.MustCompile(`(event_(start|end)_time": "|anteroom event create .*--(start|end) "?)20[012]\d-`)
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllString(string(text), -1) {
			if at := secret.FindStringIndex(b); at != nil && !strings.Contains(b[:at[0]], "umask 077\n") {
				t.Errorf("%s: other users can read the secret that this writes:\n%s", page, b)
			}
			if past.MatchString(b) {
				t.Errorf("%s: an event in the past:\n%s", page, b)
			}
		}
	}
}
