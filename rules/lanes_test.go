package rules

import (
	"errors"
	"testing"

	"github.com/anteroom/anteroom"
)

// Of the lanes whose condition holds for every reading of the path, the highest one counts.
func TestLanes(t *testing.T) {
	lanes, err := NewLanes([]anteroom.Lane{{Name: "everyone"}, {Name: "low", Priority: 10, Expression: `http.request.method eq "GET"`},
		{Name: "codes", Priority: 90}, {Name: "high", Priority: 50, Expression: `starts_with(http.request.uri.path, "/vip")`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method   string
		readings []string
		want     uint8
	}{
		{"GET", []string{"/vip/a"}, 50}, {"GET", []string{"/a"}, 10}, {"POST", []string{"/a"}, 0}, {"POST", []string{"/vip"}, 50},
		{"GET", []string{"/vip/a", "/a"}, 10}, {"POST", []string{"/vip/a", "/a"}, 0}, {"POST", []string{"/a", "/vip/a"}, 0}, {"GET", nil, 0},
	} {
		if got := lanes.Of(&Request{Method: c.method}, c.readings); got != c.want {
			t.Errorf("%s %q: %d", c.method, c.readings, got)
		}
	}
	spent := &Request{Method: "GET", used: maxSetWork}
	if got := lanes.Of(spent, []string{"/vip"}); got != 0 {
		t.Errorf("with nothing left of the budget: %d", got)
	}
	if none, err := NewLanes([]anteroom.Lane{{Name: "codes", Priority: 90}}, nil); none != nil || err != nil || none.Of(&Request{}, []string{"/"}) != 0 {
		t.Error(none, err)
	}
	_, err = NewLanes([]anteroom.Lane{{Name: "codes", Priority: 90}, {Name: "bad", Priority: 9, Expression: "true or"}, {Name: "list", Priority: 8, Expression: "ip.src in $office"}}, nil)
	faults, _ := errors.AsType[anteroom.Faults](err)
	if len(faults) != 2 || faults[0].Path != "lanes[1].expression" || faults[1].Path != "lanes[2].expression" || faults[0].Column == 0 {
		t.Error(err)
	}
}
