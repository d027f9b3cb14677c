package ticket

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Prepare returns the ring with a fresh key as next, the first of two steps for several
// nodes: every node has to hold the ring it returns before any node holds the ring that
// [Keyring.Promote] returns. A ring that has a next key is returned as it is.
func (k *Keyring) Prepare(now time.Time) (*Keyring, error) {
	if k.keys[0].state == Next {
		return k, nil
	}
	if len(k.keys) >= maxKeys {
		return nil, anteroom.Errorf(anteroom.Conflict,
			"the keyring has %d keys, the most it may have: rotate less often, or keep replaced keys for a shorter time", len(k.keys))
	}
	fresh := newKey(Next, now)
	for k.taken(fresh.id) {
		fresh = newKey(Next, now)
	}
	return ringOf(k.fixed, append(slices.Clone(k.keys), fresh)), nil
}

// Promote returns the ring with the next key as current and the current as previous, and
// without the keys that stopped sealing more than keep ago, to the second. Keep zero means
// [DefaultKeep]. What a shorter one drops makes visitors lose their places and sessions; a
// negative one drops all that ever sealed, for a key that has leaked.
// Without a next key it is an error of kind Conflict.
func (k *Keyring) Promote(now time.Time, keep time.Duration) (*Keyring, error) {
	if k.keys[0].state != Next {
		return nil, anteroom.Errorf(anteroom.Conflict, "the keyring has no next key to promote: prepare one first")
	}
	keys := slices.Clone(k.keys)
	for i := range keys {
		switch one := &keys[i]; one.state {
		case Next:
			one.state = Current
		case Current:
			one.state, one.replaced = Previous, seconds(now)
		}
	}
	return prune(ringOf(k.fixed, keys), now, keep), nil
}

// Rotate prepares and promotes in one step, for one node: a fresh key seals at once.
func (k *Keyring) Rotate(now time.Time, keep time.Duration) (*Keyring, error) {
	// What is past its time makes room for the key that comes.
	next, err := prune(k, now, keep).Prepare(now)
	if err != nil {
		return nil, err
	}
	return next.Promote(now, keep)
}

// Restore returns the ring after a backup of one was restored. It opens what either ring opens, so that nobody loses a place who got a ticket since
// the backup, and seals as before, so that other nodes open what it seals before they have heard of the restore. Only if the copy is of another
// installation, which has another fixed key, it seals as that one, whose edges know its keys. Further keys count as replaced now.
func (k *Keyring) Restore(copied *Keyring, now time.Time) *Keyring {
	base, other := k, copied
	if copied.fixed.secret != k.fixed.secret {
		base, other = copied, k
	}
	keys := slices.Clone(base.keys)
	for _, one := range other.keys {
		if base.taken(one.id) || len(keys) >= maxKeys {
			continue
		}
		if one.state != Previous {
			one.state, one.replaced = Previous, seconds(now)
		}
		keys = append(keys, one)
	}
	return ringOf(base.fixed, keys)
}

func prune(k *Keyring, now time.Time, keep time.Duration) *Keyring {
	keep = cmp.Or(keep, DefaultKeep)
	return ringOf(k.fixed, slices.DeleteFunc(slices.Clone(k.keys), func(one key) bool {
		return one.state == Previous && seconds(now).Sub(one.replaced) > keep
	}))
}

func (k *Keyring) taken(id uint32) bool { return id == k.fixed.id || k.byID[id] != nil }
