package page

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func TestLiveScriptSpeaksEveryLanguage(t *testing.T) {
	for _, language := range anteroom.Languages {
		plain, ok := AppendLive(nil, language+".js", false)
		if !ok || !strings.Contains(string(plain), wordsOf(language).Ahead) || !strings.HasSuffix(string(plain), bare("asset/page.js")) {
			t.Errorf("%s: %v %.80s", language, ok, plain)
		}
		zipped, _ := AppendLive(nil, language+".js", true)
		if string(unzip(t, zipped)) != string(plain) {
			t.Errorf("%s: compressed, the script is another", language)
		}
		if len(zipped) > 8<<10 {
			t.Errorf("%s: %d bytes", language, len(zipped))
		}
	}
	for _, name := range []string{"", "en-US", "xx-XX.js", "../verify"} {
		if script, ok := AppendLive(nil, name, false); ok || len(script) != 0 {
			t.Errorf("%q is a script", name)
		}
	}
}

// The tag's status is text in an attribute, whatever the operator's message says.
func TestStatusOfATemplateStaysInItsAttribute(t *testing.T) {
	page, err := Compile(`<script src="x" data-status="{{status}}"></script>`)
	if err != nil {
		t.Fatal(err)
	}
	v := View{Template: page, Decision: States()[0].Decision}
	v.Decision.InForce = &anteroom.InForce{Message: `"></script><script>alert(1)`}
	got := string(AppendPage(nil, &v, false))
	if strings.Count(got, "<") != 2 || strings.Count(got, `"`) != 4 {
		t.Error(got)
	}
}
