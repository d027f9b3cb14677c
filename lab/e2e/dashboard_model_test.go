package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/evanw/esbuild/pkg/api"
)

// What the dashboard reckons without a page: differences, snippets, rules, events, ranges, forecasts. The
// tables are in dashboard/app/test, beside what they test, and run where it runs.
func TestDashboardModels(t *testing.T) {
	t.Parallel()
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"../../dashboard/app/test/all.ts"}, Bundle: true, Format: api.FormatIIFE, GlobalName: "tables",
		Tsconfig: "../../dashboard/app/tsconfig.json", Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent,
	})
	for _, m := range built.Errors {
		t.Fatalf("%+v: %s", m.Location, m.Text)
	}
	b := open(t)
	do(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-US"})
	do(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	type outcome struct {
		Ran    int                            `json:"ran"`
		Faults []struct{ Name, Fault string } `json:"faults"`
	}
	got := eval[outcome](b, "(() => {"+string(built.OutputFiles[0].Contents)+"\nreturn {ran: tables.ran, faults: tables.faults}})()")
	if got.Ran < 100 {
		t.Errorf("only %d cases ran", got.Ran)
	}
	for _, f := range got.Faults {
		t.Run(f.Name, func(t *testing.T) { t.Error(f.Fault) })
	}
}
