package own

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
)

// checkTemplate tells what is wrong with an operator's page, how large it is, and where to look
// at it in every state. An empty one is the built-in page.
func (f *face) checkTemplate(r *api.Request, b schema.PageSpec) (schema.PageResult, error) {
	language := cmp.Or(b.Language, anteroom.Languages[0])
	out := schema.PageResult{Bytes: len(b.HTML), BytesMax: anteroom.MaxTemplateBytes, States: page.StateNames(), Languages: anteroom.Languages}
	if !slices.Contains(anteroom.Languages, language) {
		return out, api.Invalid("language", "is not known", "one of the languages of the answer, like en-US")
	}
	var template *page.Template
	if b.HTML != "" {
		var err error
		if template, err = page.Compile(b.HTML); err != nil {
			found, ok := api.FaultsOf(err)
			if !ok {
				return out, err
			}
			for _, one := range found {
				out.Faults = append(out.Faults, schema.PageFault{Message: one.Problem, Fix: one.Fix, Line: one.Line, Column: one.Column})
			}
		}
		for _, one := range page.Barriers(b.HTML) {
			out.Accessibility = append(out.Accessibility, schema.Barrier{Rule: one.Rule, Message: one.Message, Line: one.Line})
		}
	}
	if out.Valid = len(out.Faults) == 0; !out.Valid {
		return out, nil
	}
	view := page.View{Decision: page.States()[0].Decision, Template: template, Language: language}
	sent := len(page.AppendPage(nil, &view, true))
	out.BytesGzip = &sent
	if f.preview != nil && r.By.MaySomewhere(manage.Edit) {
		path := f.preview(template, len(b.HTML))
		all := map[string]string{}
		for _, name := range page.StateNames() {
			all[name] = path + "?" + url.Values{"state": {name}, "language": {language}}.Encode()
		}
		out.Preview = &all
	}
	return out, nil
}
