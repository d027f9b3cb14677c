package page

import (
	"strings"
	"testing"
)

// A lane with a long name, and the link to the field for codes, leave the page within what the first flight of a connection holds.
func TestPagesWithLanesAreSmall(t *testing.T) {
	views(func(name string, v View) {
		v.Lane, v.Codes = strings.Repeat("lane_", 10), true
		if size := len(AppendPage(nil, &v, true)); size > 8<<10 {
			t.Errorf("%s: %d bytes, at most %d", name, size, 8<<10)
		}
	})
}

// Whatever a lane is called, it is text; and without one, pages and objects are as they were.
func TestLaneIsText(t *testing.T) {
	v := View{Decision: States()[0].Decision}
	plain := func() [4]string {
		t, err := Compile(`<p>{{laneName}}</p>`)
		if err != nil {
			panic(err)
		}
		own := v
		own.Template = t
		return [4]string{string(AppendPage(nil, &v, false)), string(AppendStatus(nil, &v)), string(AppendJSON(nil, &v)), string(AppendPage(nil, &own, false))}
	}
	for i, text := range plain() {
		if strings.Contains(text, `"lane"`) || strings.Contains(text, "__anteroom=invite") || i == 3 && !strings.Contains(text, "<p></p>") {
			t.Errorf("without a lane: %s", text)
		}
	}
	v.Lane, v.Codes = `a<b>"\`, true
	all := plain()
	for i, want := range [4]string{`<b id="lane" dir="auto">a&lt;b&gt;`, `,"lane":"a`, `,"lane":"a`, `<p>a&lt;b&gt;`} {
		if !strings.Contains(all[i], want) || strings.Contains(all[i], "a<b>") || strings.Contains(all[i], `>"\"`) {
			t.Errorf("%s is not in %s", want, all[i])
		}
	}
	if !strings.Contains(all[0], `<a href="?__anteroom=invite" rel="nofollow">Invite code</a>`) {
		t.Error("the page does not lead to the field for codes")
	}
	placed, other := string(AppendInvite(nil, v, "a=1", "", Uninvited, true)), string(AppendInvite(nil, v, "a=1", "", Uninvited, false))
	if !strings.Contains(placed, `<h1>Invite code</h1>`) || !strings.Contains(placed, `<a href="?a=1">Stay in line</a>`) || strings.Contains(other, "Stay in line") {
		t.Errorf("%s\n%s", placed, other)
	}
}
