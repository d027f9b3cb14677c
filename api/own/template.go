package own

import (
	"net/url"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
)

// checkTemplate tells what is wrong with an operator's page, how large it is, and where to look
// at it in every state. An empty one is the built-in page.
func (f *face) checkTemplate(r *api.Request) (api.Answer, error) {
	o, err := body(r, "html", "language")
	if err != nil {
		return api.Answer{}, err
	}
	html, err := o.Get("html").Text()
	if err != nil {
		return api.Answer{}, err
	}
	language, err := o.Get("language").Text()
	if err != nil {
		return api.Answer{}, err
	}
	if language == "" {
		language = anteroom.Languages[0]
	}
	if !slices.Contains(anteroom.Languages, language) {
		return api.Answer{}, api.Invalid("language", "is not known", "one of the languages of the answer, like en-US")
	}
	faults, barriers := []api.Members{}, []api.Members{}
	var template *page.Template
	if html != "" {
		if template, err = page.Compile(html); err != nil {
			found, ok := api.FaultsOf(err)
			if !ok {
				return api.Answer{}, err
			}
			for _, one := range found {
				faults = append(faults, api.Members{{Name: "message", Value: one.Problem}, {Name: "fix", Value: one.Fix}, {Name: "line", Value: one.Line}, {Name: "column", Value: one.Column}})
			}
		}
		for _, one := range page.Barriers(html) {
			barriers = append(barriers, api.Members{{Name: "rule", Value: one.Rule}, {Name: "message", Value: one.Message}, {Name: "line", Value: one.Line}})
		}
	}
	valid := len(faults) == 0
	var sent, previews any
	if valid {
		view := page.View{Decision: page.States()[0].Decision, Template: template, Language: language}
		sent = len(page.AppendPage(nil, view, true))
		if f.preview != nil && r.By.MaySomewhere(manage.Edit) {
			path := f.preview(template, len(html))
			all := map[string]string{}
			for _, name := range page.StateNames() {
				all[name] = path + "?" + url.Values{"state": {name}, "language": {language}}.Encode()
			}
			previews = all
		}
	}
	return api.Answer{Result: api.Members{
		{Name: "valid", Value: valid}, {Name: "faults", Value: faults}, {Name: "bytes", Value: len(html)}, {Name: "bytes_max", Value: anteroom.MaxTemplateBytes},
		{Name: "bytes_gzip", Value: sent}, {Name: "accessibility", Value: barriers}, {Name: "states", Value: page.StateNames()},
		{Name: "languages", Value: anteroom.Languages}, {Name: "preview", Value: previews},
	}}, nil
}
