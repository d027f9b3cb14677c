package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

// The keys that each kind of arrival has beside site.
var kinds = []struct {
	key  string
	keys []string
}{
	{"per_minute", []string{"from", "to", "per_minute", "to_per_minute"}},
	{"visitors", []string{"at", "over", "visitors"}},
	{"csv", []string{"at", "csv", "scale"}},
	{"log", []string{"at", "log", "path", "absence", "scale"}},
}

// arrivals makes the flows, and checks that all of them fit.
func (b *builder) arrivals() []sim.Flow {
	if b.given("arrivals") && len(b.doc.Arrivals) == 0 {
		b.At("arrivals", "is empty", "say who comes, like - {per_minute: 100}")
	}
	var flows []sim.Flow
	total := 0.0
	for i, a := range b.doc.Arrivals {
		path := fmt.Sprintf("arrivals[%d]", i)
		if a.Site != "" {
			b.site(path+".site", a.Site)
		}
		var some []sim.Flow
		switch b.kindOf(path, a) {
		case "per_minute":
			some = b.rate(path, a)
		case "visitors":
			some = []sim.Flow{{From: a.At, To: a.At + a.Over, Visitors: a.Visitors, Site: a.Site}}
			b.within(path+".at", a.At)
			if a.At <= b.doc.Length && a.At+a.Over > b.doc.Length {
				b.At(path+".over", fmt.Sprintf("ends at %s, after the end of the plan", field.Short(a.At+a.Over)), fmt.Sprintf("at most the length, %s", field.Short(b.doc.Length)))
			}
		case "csv":
			b.within(path+".at", a.At)
			some = b.pastSale(path, a)
		case "log":
			b.within(path+".at", a.At)
			some = b.pastLog(path, a)
		}
		for _, f := range some {
			total += float64(f.Visitors) + (f.PerMinute+f.ToPerMinute)/2*(f.To-f.From).Minutes()
		}
		if flows = append(flows, some...); len(flows) > sim.MaxFlows {
			b.At(path, fmt.Sprintf("makes more than %d stretches of arrivals", sim.MaxFlows), "sum the rows of csv files, by the minute or by five")
			return nil
		}
		if total > sim.MaxVisitors {
			b.At(path, fmt.Sprintf("makes %.0f visitors in all", total), fmt.Sprintf("at most %d; simulate a part of the sale, or a tenth of the visitors with a tenth of the limits", sim.MaxVisitors))
			return nil
		}
	}
	if total == 0 && b.OK() {
		b.At("arrivals", "bring nobody", "a per_minute above 0, or visitors")
	}
	return flows
}

// kindOf says which of the kinds a member is; "" with a fault when it is none or two.
func (b *builder) kindOf(path string, a arrival) string {
	kind := -1
	for i, k := range kinds {
		if !b.given(path + "." + k.key) {
			continue
		}
		if kind >= 0 {
			b.At(path+"."+k.key, "is given together with "+kinds[kind].key, "make two members of it")
			return ""
		}
		kind = i
	}
	if kind < 0 {
		b.At(path, "says nobody", "give it per_minute, visitors, csv or log")
		return ""
	}
	own := map[string]bool{"site": true}
	for _, key := range kinds[kind].keys {
		own[key] = true
	}
	for _, k := range kinds {
		for _, key := range k.keys {
			if !own[key] && b.given(path+"."+key) {
				b.At(path+"."+key, "does not go with "+kinds[kind].key, "known here: "+strings.Join(kinds[kind].keys, ", ")+", site")
			}
		}
	}
	return kinds[kind].key
}

func (b *builder) rate(path string, a arrival) []sim.Flow {
	if !b.given(path + ".to") {
		a.To = b.doc.Length
	}
	if !b.given(path + ".to_per_minute") {
		a.ToPerMinute = a.PerMinute
	}
	b.within(path+".from", a.From)
	b.within(path+".to", a.To)
	if a.To <= a.From && a.From <= b.doc.Length {
		b.At(path+".to", fmt.Sprintf("%s is not after from, %s", field.Short(a.To), field.Short(a.From)), "a later moment; both count from the start of the plan")
		return nil
	}
	return []sim.Flow{{From: a.From, To: a.To, PerMinute: a.PerMinute, ToPerMinute: a.ToPerMinute, Site: a.Site}}
}

// usual returns the middle one of some durations, and a minute when there is none.
func usual(ascending []time.Duration) time.Duration {
	if len(ascending) == 0 {
		return time.Minute
	}
	return ascending[len(ascending)/2]
}
