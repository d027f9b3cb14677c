package manage

import (
	"slices"
	"sync"
	"time"
)

// lent are tokens of people who have signed in elsewhere: in memory only, so that they end with the process.
type lent struct {
	mu  sync.Mutex
	all []*token // the oldest first
}

// Lend makes a token that this process alone knows, for a person who has signed in elsewhere: the audit names the person.
// It ends after life. Beyond maxLent, the oldest ends.
func (m *Manager) Lend(name string, grants []Grant, life time.Duration) (text string, err error) {
	now := m.now()
	if err := (TokenSpec{Name: name, Grants: grants, ExpiresOn: now.Add(life)}).check(now); err != nil {
		return "", err
	}
	text = newSecret()
	m.lent.mu.Lock()
	defer m.lent.mu.Unlock()
	m.lent.expire(now)
	if n := len(m.lent.all); n >= maxLent {
		m.lent.all = slices.Delete(m.lent.all, 0, n-maxLent+1)
	}
	m.lent.all = append(m.lent.all, &token{Name: name, Grants: slices.Clone(grants), CreatedOn: now, CreatedBy: name, ExpiresOn: now.Add(life), Secrets: []secret{secretOf(text, now)}})
	return text, nil
}

func (l *lent) expire(now time.Time) {
	l.all = slices.DeleteFunc(l.all, func(t *token) bool { return over(t.ExpiresOn, now) })
}

// find returns the token with the secret; nil if there is none.
func (l *lent) find(sum digest, now time.Time) *token {
	return l.first(now, func(t *token) bool { return t.Secrets[0].Token == sum })
}

// named returns a token of a person; nil if there is none.
func (l *lent) named(name string, now time.Time) *token {
	return l.first(now, func(t *token) bool { return t.Name == name })
}

func (l *lent) first(now time.Time, is func(*token) bool) *token {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if i := slices.IndexFunc(l.all, is); i >= 0 {
		return l.all[i]
	}
	return nil
}
