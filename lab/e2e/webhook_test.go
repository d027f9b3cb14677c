package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAReceiverInJavaScript runs the check of docs/webhooks.md on the signatures that are there for
// receivers in other languages.
func TestAReceiverInJavaScript(t *testing.T) {
	t.Parallel()
	node, err := find("node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?ms)^```js verify\n(.*?)^```$").FindSubmatch(page)
	if code == nil {
		t.Fatal("the page has no code")
	}
	vectors, err := filepath.Abs("../../manage/webhook/testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "verify.mjs")
	run := string(code[1]) + `
import { readFileSync } from "node:fs";
for (const v of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  const got = verify(v.signature, v.body, v.secret, v.now);
  console.log(got === v.valid ? "as it should be" : "WRONG: " + v.name);
}
`
	if err := os.WriteFile(script, []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, script, vectors).CombinedOutput()
	if err != nil || strings.Contains(string(out), "WRONG") || strings.Count(string(out), "as it should be") < 15 {
		t.Errorf("%v\n%s", err, out)
	}
}
