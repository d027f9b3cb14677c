package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLedgerKeepsTheLimit drives the account of the coordinator and the balances of several
// sites with messages that are lost, repeated and reordered, coordinators that forget what
// was returned, and sites that are lost. After every step what is used, lost sites
// included, fits the limit.
func TestLedgerKeepsTheLimit(t *testing.T) {
	type site struct {
		key  SiteKey
		own  Balance
		lost bool
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 12).Draw(t, "limit")
		l := newLedger()
		l.Limit = [units]int64{limit, limit}
		var sites []*site
		add := func() {
			s := &site{key: SiteKey{Name: "s", Incarnation: uint64(len(sites) + 1)}}
			l.Open(s.key, Units{}, Units{})
			sites = append(sites, s)
		}
		add()
		add()
		type grant struct {
			to *site
			g  Units
		}
		type word struct {
			from *site
			ret  Units
			used Units
		}
		var down []grant
		var up []word
		pick := func() *site { return rapid.SampledFrom(sites).Draw(t, "site") }
		check := func() {
			for k := range units {
				var used int64
				for _, s := range sites {
					used += int64(s.own.Used[k] + s.own.Offers)
					if f := s.own.Free(k); f < 0 && !s.lost {
						t.Fatalf("%v has %d free of unit %d", s.key, f, k)
					}
				}
				if used > limit {
					t.Fatalf("unit %d: %d used, %d allowed", k, used, limit)
				}
				if p := l.Pool(k); p > limit {
					t.Fatalf("unit %d: pool of %d, limit %d", k, p, limit)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				s, n := pick(), rapid.Uint64Range(1, 4).Draw(t, "n")
				if s.lost {
					return
				}
				l.accounts[s.key].Reserved = Units{1 << 30, 1 << 30}
				l.Grant(s.key, n)
				down = append(down, grant{s, l.accounts[s.key].Granted})
			},
			"deliver grant": func(t *rapid.T) { // any of them, any number of times, or never
				if len(down) == 0 {
					return
				}
				m := rapid.SampledFrom(down).Draw(t, "message")
				if !m.to.lost {
					m.to.own.Granted.raise(m.g)
				}
			},
			"admit": func(t *rapid.T) {
				if s := pick(); !s.lost && s.own.Permits() >= 1 {
					s.own.Used[Seat]++
					s.own.Used[RateSlot]++
				}
			},
			"offer": func(t *rapid.T) {
				if s := pick(); !s.lost && s.own.Permits() >= 1 {
					s.own.Offers++
				} else if s.own.Offers > 0 {
					s.own.Offers--
				}
			},
			"end": func(t *rapid.T) { // sessions of a lost site go on until they lapse
				s, k := pick(), rapid.IntRange(0, units-1).Draw(t, "unit")
				if s.own.Used[k] > 0 {
					s.own.Used[k]--
				}
			},
			"return": func(t *rapid.T) {
				if s := pick(); !s.lost {
					s.own.Return([units]int64{rapid.Int64Range(0, 2).Draw(t, "seats"), rapid.Int64Range(0, 2).Draw(t, "rate slots")})
					up = append(up, word{s, s.own.Returned, s.own.committed()})
				}
			},
			"deliver report": func(t *rapid.T) {
				if len(up) == 0 {
					return
				}
				m := rapid.SampledFrom(up).Draw(t, "message")
				if l.accounts[m.from.key] == nil {
					return
				}
				if err := l.Heard(m.from.key, m.ret); err != nil {
					t.Fatal(err)
				}
				owned := m.used
				for k := range owned {
					owned[k] += m.ret[k]
				}
				before := l.accounts[m.from.key].Granted
				l.Concede(m.from.key, owned)
				if l.accounts[m.from.key].Granted != before {
					t.Fatalf("%v was conceded %v beyond %v without having admitted on its own", m.from.key, owned, before)
				}
			},
			"coordinator restarts": func(t *rapid.T) { // it knows G and nothing of what was returned
				old := l
				l = newLedger()
				l.Limit = old.Limit
				for key, a := range old.accounts {
					l.Open(key, a.Granted, Units{})
				}
			},
			"site lost": func(t *rapid.T) {
				if s := pick(); !s.lost && len(sites) < 6 {
					s.lost = true
					s.own.Offers = 0
					add()
				}
			},
			"lost site written off": func(t *rapid.T) { // when its sessions have lapsed
				if s := pick(); s.lost && s.own.Used == (Units{}) {
					l.Close(s.key)
				}
			},
			"": func(*rapid.T) { check() },
		})
		for _, s := range sites { // everybody leaves and every message arrives
			s.own.Used, s.own.Offers = Units{}, 0
			if s.lost {
				l.Close(s.key)
				continue
			}
			s.own.Granted.raise(l.accounts[s.key].Granted)
			s.own.Return([units]int64{})
			if err := l.Heard(s.key, s.own.Returned); err != nil {
				t.Fatal(err)
			}
		}
		for k := range units {
			if l.Pool(k) != limit {
				t.Fatalf("unit %d: %d came back of %d", k, l.Pool(k), limit)
			}
		}
	})
}
