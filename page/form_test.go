package page

import (
	"strings"
	"testing"
)

// What a visitor has written comes back as text, whole or not at all, and only where the page is read by
// somebody who waits.
func TestFormIsKeptAsText(t *testing.T) {
	waiting := States()[0].Decision
	page := func(v View) string { return string(AppendPage(nil, &v, false)) }
	v := View{Decision: waiting, Unsent: true, Form: []Field{{"a", `x" autofocus onfocus="alert(1)`}, {"</form><script>", "'"}}}
	if got := page(v); !strings.Contains(got, `value="x&#34; autofocus onfocus=&#34;alert(1)"`) || !strings.Contains(got, `name="&lt;/form&gt;&lt;script&gt;" value="&#39;"`) {
		t.Errorf("the fields are not as written:\n%s", got)
	}
	v.Form = []Field{{"a", strings.Repeat("\"", maxFormHTML/5)}}
	if got := page(v); strings.Contains(got, `id="form"`) || !strings.Contains(got, `id="unsent"`) {
		t.Error("a form that is too long for a page is on it")
	}
	v.Form = []Field{{"a", "b"}}
	for _, s := range States() {
		if st := stateOf(&s.Decision); st.static() {
			v.Decision = s.Decision
			if strings.Contains(page(v), `id="form"`) {
				t.Errorf("%s: a page that does not come back keeps a form", s.Name)
			}
		}
	}
	// Redirects of the answer count for form-action, so that it must not be there.
	if p := ContentSecurityPolicy(View{Unsent: true}); strings.Contains(p, "form-action") || !strings.Contains(p, "'sha256-"+hash(library().form)+"'") {
		t.Errorf("policy: %s", p)
	}
}
