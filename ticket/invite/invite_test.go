package invite_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket/invite"
)

// People type codes in their own way, and mistake letters for digits.
func TestRead(t *testing.T) {
	code := "0123-4567-89AB-1W3N"
	want, ok := invite.Read(code)
	if !ok {
		t.Fatal("a code is not read")
	}
	for _, same := range []string{"0123456789AB1W3N", " 0123 4567 89ab 1w3n ", "O123-4567-89AB-IW3N", "o123456789ablw3n"} {
		if h, ok := invite.Read(same); !ok || h != want {
			t.Errorf("%q is another code", same)
		}
	}
	for _, none := range []string{"", "0123-4567-89AB-1W3", code + "0", "0123-4567-89AB-1W3U", "0123_4567_89AB_1W3N", code + strings.Repeat(" ", 100), "0123-4567-89AB-1W3\xff"} {
		if _, ok := invite.Read(none); ok {
			t.Errorf("%q is read", none)
		}
	}
	if h, _ := invite.Read("0123-4567-89AB-1W3M"); h == want {
		t.Error("another code has the same hash")
	}
}

func TestNewCodesAreReadAndDiffer(t *testing.T) {
	seen := map[invite.Hash]bool{}
	for range 1000 {
		h, ok := invite.Read(invite.NewCode())
		if !ok || seen[h] {
			t.Fatal("a code is not read, or made twice")
		}
		seen[h] = true
	}
}

// However many spend at once, an invitation has only so many uses.
func TestSpendAtOnce(t *testing.T) {
	for _, most := range []int{1, 3} {
		t.Run(strconv.Itoa(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := memlink.New()
				defer link.Close()
				var got, refused atomic.Int32
				var all sync.WaitGroup
				for i := range 10 {
					all.Go(func() {
						switch err := invite.Spend(t.Context(), link, invite.Use{Key: "invites.a", Most: most, By: strconv.Itoa(i), Now: time.Now()}); {
						case err == nil:
							got.Add(1)
						case errors.Is(err, invite.ErrSpent):
							refused.Add(1)
						default:
							t.Error(err)
						}
					})
				}
				all.Wait()
				used, err := invite.Used(t.Context(), link, "invites.a")
				if int(got.Load()) != most || int(refused.Load()) != 10-most || used != most || err != nil {
					t.Errorf("%d of 10 have one of %d uses, %d do not; %d are counted, %v", got.Load(), most, refused.Load(), used, err)
				}
			})
		})
	}
}

// A visitor whose answer was lost has the same use again, for a minute, and nobody else has.
func TestSpendAgain(t *testing.T) {
	link := memlink.New()
	defer link.Close()
	now := time.Now()
	spend := func(by string, after time.Duration) error {
		return invite.Spend(t.Context(), link, invite.Use{Key: "invites.a", Most: 1, Until: now.Add(time.Hour), By: by, Now: now.Add(after)})
	}
	if err := errors.Join(spend("a", 0), spend("a", 59*time.Second)); err != nil {
		t.Error(err)
	}
	for by, after := range map[string]time.Duration{"b": 0, "": 0, "a": time.Minute} {
		if err := spend(by, after); !errors.Is(err, invite.ErrSpent) {
			t.Errorf("%q after %v: %v", by, after, err)
		}
	}
	if err := invite.Spend(t.Context(), link, invite.Use{Key: "invites.b", Most: 1, Now: now}); err != nil {
		t.Error(err)
	}
	if err := invite.Spend(t.Context(), link, invite.Use{Key: "invites.b", Most: 1, Now: now}); !errors.Is(err, invite.ErrSpent) {
		t.Errorf("nobody has it again: %v", err)
	}
}

// An invitation that expires leaves nothing behind.
func TestSpentIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		defer link.Close()
		if err := invite.Spend(t.Context(), link, invite.Use{Key: "invites.a", Most: 1, Until: time.Now().Add(time.Hour), Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + 10*time.Second)
		if all, err := link.Keys(t.Context(), "invites."); err != nil || len(all) > 0 {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestMark(t *testing.T) {
	a, b := invite.MarkOf([32]byte{1}, "a"), invite.MarkOf([32]byte{1}, "b")
	id := a.ID("seed")
	if !a.Has(id) || a.ID("seed") != id || a.ID("other") == id {
		t.Error("an id of the mark is not recognized, or not the one of its seed")
	}
	if b.Has(id) || invite.MarkOf([32]byte{2}, "a").Has(id) || a.Has(anteroom.ID{}) {
		t.Error("an id is recognized that the mark has not made")
	}
	for i := range id {
		id[i] ^= 1
		if a.Has(id) {
			t.Errorf("a changed byte %d is not noticed", i)
		}
		id[i] ^= 1
	}
}
