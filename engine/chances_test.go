package engine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// rowsBelow are the cells of the tables of docs/shuffle.md under a header that begins so.
func rowsBelow(t *testing.T, page, header string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n| "+header)
	if !found {
		t.Fatalf("docs/shuffle.md has no table %q", header)
	}
	for i, line := range strings.Split(rest, "\n") {
		switch {
		case i < 2: // the rest of the header, and the line below it
		case !strings.HasPrefix(line, "|"):
			return rows
		default:
			cells := strings.Split(strings.Trim(line, "| "), "|")
			for j := range cells {
				cells[j] = strings.TrimSpace(cells[j])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// atLeastOne is the probability that n of all tickets get at least one of the seats.
func atLeastOne(n, seats, all int) float64 {
	none := 1.0
	for i := range n {
		none *= float64(all-seats-i) / float64(all-i)
	}
	return 1 - none
}

func manyTickets(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/shuffle.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestWhatManyTicketsBuy computes the figures of docs/shuffle.md, and compares them with shuffles.
func TestWhatManyTicketsBuy(t *testing.T) {
	const all, seats = 10_000, 1_000
	rows := rowsBelow(t, manyTickets(t), "tickets of one buyer")
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		n, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		if want := strconv.FormatFloat(float64(n)*seats/all, 'f', -1, 64); row[1] != want {
			t.Errorf("%d tickets: %s seats, want %s", n, row[1], want)
		}
		shown, err := strconv.ParseFloat(strings.TrimSuffix(row[2], " %"), 64)
		digits := len(row[2][strings.IndexByte(row[2], '.')+1:]) - len(" %")
		if exact := 100 * atLeastOne(n, seats, all); err != nil || math.Abs(shown-exact) > 0.51*math.Pow10(-digits) {
			t.Errorf("%d tickets: %s, want %.4f %%", n, row[2], exact)
		}
	}

	// The shuffle itself, with a tenth of tickets and seats: 10 tickets of one buyer in each.
	const rounds, few = 400, 1_000
	random := rand.New(rand.NewPCG(1, 2))
	won, some := 0, 0
	for range rounds {
		ids := make([]anteroom.ID, few)
		for i := range ids {
			binary.LittleEndian.PutUint64(ids[i][:], random.Uint64())
			binary.LittleEndian.PutUint64(ids[i][8:], random.Uint64())
		}
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], random.Uint64())
		got := 0
		for _, i := range Order(ShuffleKey(seed[:], Entries(ids)), ids)[:few/10] {
			if i < 10 {
				got++
			}
		}
		won += got
		some += min(got, 1)
	}
	if share := float64(won) / rounds; math.Abs(share-1) > 0.2 { // four standard deviations
		t.Errorf("10 of 1000 tickets got %.2f of 100 seats on average, want 1", share)
	}
	if share, want := float64(some)/rounds, atLeastOne(10, few/10, few); math.Abs(share-want) > 0.1 {
		t.Errorf("10 of 1000 tickets got a seat in %.2f of the shuffles, want %.2f", share, want)
	}
}

// TestWhatANetworkGetsWithoutAWait: as many first requests of one network as docs/shuffle.md says are admitted, however many come.
func TestWhatANetworkGetsWithoutADraw(t *testing.T) {
	rows := rowsBelow(t, manyTickets(t), "one address")
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	trusted := func(networks func(n uint32) anteroom.Networks) (count int) {
		s := NewSite(1, SiteKey{}, anteroom.Settings{TotalActiveUsers: 300, NewUsersPerMinute: 300}.WithDefaults())
		for n := range uint32(5_000) {
			var id anteroom.ID
			binary.LittleEndian.PutUint32(id[:], n+1)
			if s.trusts(1, &anteroom.Visit{Networks: networks(n + 10)}, id) {
				count++
			}
		}
		return count
	}
	for i, networks := range []func(n uint32) anteroom.Networks{
		func(uint32) anteroom.Networks { return anteroom.Networks{1, 2, 3} },
		func(n uint32) anteroom.Networks { return anteroom.Networks{n, 2, 3} },
		func(n uint32) anteroom.Networks { return anteroom.Networks{n, n + 10_000, 3} },
		func(n uint32) anteroom.Networks { return anteroom.Networks{n, n + 10_000, n + 20_000} },
	} {
		if got := strconv.Itoa(trusted(networks)); rows[0][i] != got {
			t.Errorf("column %d says %s, want %s", i+1, rows[0][i], got)
		}
	}
}

// TestWhatATicketCosts: the hashes that docs/shuffle.md names follow from the parts and bits of the proof of work, as
// docs/config.md has them.
func TestWhatATicketCosts(t *testing.T) {
	config, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, hashes := range map[string]string{"difficulty": "8,192 hashes", "max_difficulty": "65,536 for a ticket"} {
		m := regexp.MustCompile("\n\\| `" + key + "` [^\n]*?`(\\d+)`").FindStringSubmatch(string(config))
		if m == nil {
			t.Fatalf("docs/config.md has no %s", key)
		}
		bits, _ := strconv.Atoi(m[1])
		want := strings.ReplaceAll(strings.Fields(hashes)[0], ",", "")
		if strconv.Itoa(8<<bits) != want || !strings.Contains(strings.Join(strings.Fields(manyTickets(t)), " "), hashes) {
			t.Errorf("%s is %d bits: %d hashes; the page should say %q", key, bits, 8<<bits, hashes)
		}
	}
}
