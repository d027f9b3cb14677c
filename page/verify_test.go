package page

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

func TestVerifyPageStandsAlone(t *testing.T) {
	page, policy := string(AppendVerify(nil)), VerifyPolicy()
	for _, tag := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(page, "<"+tag+">")
		body, rest, _ := strings.Cut(rest, "</"+tag+">")
		sum := sha256.Sum256([]byte(body))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("%s lacks %s", policy, want)
		}
		if strings.Contains(rest, "<"+tag) {
			t.Errorf("a second %s", tag)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(page, " style=") || strings.Contains(page, ` onclick="`) || strings.Contains(page, "eval(") {
		t.Error("the page does what its policy forbids")
	}
	if strings.Contains(strings.Replace(page, "http://www.w3.org/2000/svg", "", 1), "://") {
		t.Error("the page refers to another place")
	}
	for _, label := range []string{"wr-shuffle-v1", `<label for="receipt">`, `<label for="list">`, `role="status"`, "<noscript>", `lang="en"`} {
		if !strings.Contains(page, label) {
			t.Errorf("the page lacks %s", label)
		}
	}
	if len(page) > 14<<10 {
		t.Errorf("%d bytes", len(page))
	}
}
