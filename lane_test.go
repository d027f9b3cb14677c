package anteroom_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func TestBadLanes(t *testing.T) {
	accounts := anteroom.Accounts{AccountIssuer: "https://login.example.com", AccountAudience: "shop", AccountKeys: "https://login.example.com/jwks", AccountLaneClaim: "tier"}
	many := make([]anteroom.Lane, anteroom.MaxLanes+1)
	for i := range many {
		many[i] = anteroom.Lane{Name: string(rune('a' + i)), Priority: i}
	}
	good := []anteroom.Lane{{Name: "vip", Priority: 100, Reserved: 90, Expression: "true", Claim: "gold"}, {Name: "members", Priority: 1, Share: 75, Claim: "silver"}, {Name: "everyone", Share: 25}}
	room := func(r anteroom.Room, lanes []anteroom.Lane) anteroom.Room {
		r.Name, r.Routes, r.Lanes = "shop", []anteroom.Route{{Host: "a.example"}}, lanes
		r.TotalActiveUsers, r.NewUsersPerMinute = 200, 200
		return r
	}
	if f := room(anteroom.Room{Accounts: accounts}, good).Check(); len(f) > 0 {
		t.Fatal(f)
	}
	if f := room(anteroom.Room{}, many[:anteroom.MaxLanes]).Check(); len(f) > 0 {
		t.Fatal(f)
	}
	for want, lanes := range map[string][]anteroom.Lane{
		"lanes: has 9 lanes":              many,
		"lanes[0].name: is missing":       {{Priority: 1}},
		"lanes[0].name: \"a b\" has":      {{Name: "a b", Priority: 1}},
		"lanes[0].name: has 51 bytes":     {{Name: strings.Repeat("a", 51), Priority: 1}},
		"lanes[1].name: \"a\" is also":    {{Name: "a", Priority: 1}, {Name: "a", Priority: 2}},
		"lanes[2].priority: 7 is also":    {{Name: "a", Priority: 7}, {Name: "b", Priority: 2}, {Name: "c", Priority: 7}},
		"lanes[1].priority: 0 is also":    {{Name: "a"}, {Name: "b"}},
		"lanes[0].priority: 101 is":       {{Name: "a", Priority: 101}},
		"lanes[0].priority: -1 is":        {{Name: "a", Priority: -1}},
		"lanes[0].share: 101 is":          {{Name: "a", Share: 101}},
		"lanes[0].reserved: 91 is":        {{Name: "a", Reserved: 91}},
		"lanes: have shares of 101%":      {{Name: "a", Share: 51}, {Name: "b", Priority: 1, Share: 50}},
		"lanes: have reserves of 91%":     {{Name: "a", Reserved: 41}, {Name: "b", Priority: 1, Reserved: 50}},
		"lanes[0].expression: has no":     {{Name: "a", Expression: "true"}},
		"lanes[0].claim: has no":          {{Name: "a", Claim: "gold"}},
		"lanes[0].claim: has 129 bytes":   {{Name: "a", Priority: 1, Claim: strings.Repeat("a", 129)}},
		"lanes[0].expression: has 4097 b": {{Name: "a", Priority: 1, Expression: strings.Repeat("a", 4097)}},
	} {
		expectFault(t, room(anteroom.Room{Accounts: accounts}, lanes).Check(), want)
	}
	claimed := []anteroom.Lane{{Name: "a", Priority: 1, Claim: "gold"}}
	expectFault(t, room(anteroom.Room{}, claimed).Check(), "lanes[0].claim: needs a token")
	accounts.AccountLaneClaim = ""
	expectFault(t, room(anteroom.Room{Accounts: accounts}, claimed).Check(), "lanes[0].claim: needs a token")
	expectFault(t, room(anteroom.Room{Accounts: anteroom.Accounts{AccountLaneClaim: "tier"}}, nil).Check(), "account_issuer: is missing")
	expectFault(t, room(anteroom.Room{Lottery: anteroom.Lottery{LotteryPercent: 5}}, []anteroom.Lane{{Name: "a"}}).Check(), "lanes: cannot go with lottery_percent")
}

func expectFault(t *testing.T, faults anteroom.Faults, want string) {
	t.Helper()
	if !slices.ContainsFunc(faults, func(f anteroom.Fault) bool { return strings.HasPrefix(f.Path+": "+f.Problem, want) && f.Fix != "" }) {
		t.Errorf("%q is not among %v", want, faults)
	}
}

// The settings in force have the room's lanes, in an event as well, and always the same ones: they are compared and sent on often.
func TestSettingsHaveTheLanes(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	r := anteroom.Room{Name: "shop", Lanes: []anteroom.Lane{{Name: "vip", Priority: 50}, {Name: "everyone", Share: 10}},
		Events: []anteroom.Event{{Name: "drop", Start: anteroom.StampOf(now), End: anteroom.StampOf(now.Add(time.Hour))}}}.WithDefaults()
	before, during := r.At(anteroom.TimeOf(now.Add(-time.Hour))), r.AtWithAhead(anteroom.TimeOf(now.Add(time.Minute)))
	if during.Event == nil || during.Settings.Lanes == nil || !slices.Equal(during.Settings.Lanes.List, r.Lanes) {
		t.Fatal(during)
	}
	if before.Settings.Lanes != during.Settings.Lanes || r.WithDefaults().Settings.Lanes != during.Settings.Lanes {
		t.Error("not the same")
	}
	for priority, want := range map[uint8]string{0: "everyone", 50: "vip", 7: "", anteroom.LaneBack: ""} {
		if got := r.LaneName(priority); got != want {
			t.Errorf("%d: %q", priority, got)
		}
	}
	r.Lanes = r.Lanes[:1]
	if changed := r.WithDefaults(); len(changed.Settings.Lanes.List) != 1 || len(during.Settings.Lanes.List) != 2 {
		t.Error(changed.Settings.Lanes, during.Settings.Lanes)
	}
	r.Lanes = nil
	if none := r.WithDefaults(); none.Settings.Lanes != nil {
		t.Error(none.Settings.Lanes)
	}
}
