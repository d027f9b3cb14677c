package manage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

// TokenID identifies a token: 32 lower-case hexadecimal digits. It is not a secret.
type TokenID string

// Token is a token without its secret, which only its creator has seen.
type Token struct {
	ID        TokenID
	Name      string
	Grants    []Grant
	Networks  []netip.Prefix // from which it may be used; empty means from everywhere
	CreatedOn time.Time
	CreatedBy string
	ExpiresOn time.Time // zero means never
	LastUsed  time.Time // to the minute, since this process began; zero means not yet
	// Secrets are those that are valid, the newest first, with their ends.
	Secrets []TokenSecret
}

// TokenSecret is one of a token's secrets.
type TokenSecret struct {
	Prefix    string // its first characters, to tell it from others
	CreatedOn time.Time
	ExpiresOn time.Time // zero means with the token
}

// TokenSpec says what a new token is to be.
type TokenSpec struct {
	Name     string // 1 to 64 bytes
	Grants   []Grant
	Networks []netip.Prefix
	// ExpiresOn is the end; zero means in DefaultTokenLife, unless NeverExpires.
	ExpiresOn    time.Time
	NeverExpires bool
}

// digest is the SHA-256 of a secret: all that is stored of it. The entropy of a secret makes
// a slower hash pointless.
type digest [32]byte

// MarshalText and UnmarshalText make it hexadecimal digits in documents.
func (d digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("%.80q is no SHA-256", text)
	}
	copy(d[:], b)
	return nil
}

type token struct {
	ID        TokenID        `json:"id"`
	Made      uint64         `json:"made"`
	Name      string         `json:"name"`
	Grants    []Grant        `json:"grants"`
	Networks  []netip.Prefix `json:"networks,omitempty"`
	CreatedOn time.Time      `json:"created_on"`
	CreatedBy string         `json:"created_by"`
	ExpiresOn time.Time      `json:"expires_on,omitzero"`
	Secrets   []secret       `json:"secrets"` // the newest first
}

type secret struct {
	Token     digest    `json:"token"` // of the secret itself
	Key       digest    `json:"key"`   // of what AuthKey makes of it
	Prefix    string    `json:"prefix"`
	CreatedOn time.Time `json:"created_on"`
	ExpiresOn time.Time `json:"expires_on,omitzero"`
}

const (
	tokenPrefixText = "anr_"
	base62          = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	authKeyLength   = 37
	shownPrefix     = 8
)

// newSecret makes a token's secret: "anr_", 32 random bytes in base 62 and their CRC-32, by
// which scanners for leaked secrets recognise it.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return spelled(tokenPrefixText, b[:])
}

// spelled writes 32 bytes as a secret.
func spelled(prefix string, b []byte) string {
	body := encode62(b, 43)
	return prefix + body + encode62(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body))), 6)
}

// encode62 writes a big-endian number in base 62, with a number of digits that holds it.
func encode62(number []byte, digits int) string {
	number = slices.Clone(number)
	out := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		rest := 0
		for j, b := range number {
			v := rest<<8 | int(b)
			number[j], rest = byte(v/62), v%62
		}
		out[i] = base62[rest]
	}
	return string(out)
}

// AuthKey derives what clients that know no bearer tokens send as X-Auth-Key: 37 hexadecimal
// digits with the token's permissions.
func AuthKey(secret string) string {
	sum := sha256.Sum256([]byte("anteroom-auth-key\x00" + secret))
	return hex.EncodeToString(sum[:])[:authKeyLength]
}

func secretOf(text string, now time.Time) secret {
	prefix := ""
	if strings.HasPrefix(text, tokenPrefixText) {
		prefix = text[:shownPrefix]
	}
	return secret{Token: sha256.Sum256([]byte(text)), Key: sha256.Sum256([]byte(AuthKey(text))), Prefix: prefix, CreatedOn: now}
}

// givenToken checks and returns a token of the environment; nil for an empty text.
func (m *Manager) givenToken(name string, may Permission, text string) (*token, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) < 40 || len(text) > 80 || strings.Trim(text, base62+"_-") != "" {
		return nil, anteroom.Errorf(anteroom.Invalid, "%s cannot be a token: 40 to 80 letters, digits, _ and - are needed, and it has %d characters. Make one with: openssl rand -hex 32", name, len(text))
	}
	return &token{Name: name, Grants: []Grant{{Permission: may}}, Secrets: []secret{secretOf(text, m.now())}}, nil
}

// begin makes the first token where there is none.
func (m *Manager) begin(ctx context.Context) error {
	if m.env != nil || m.cfg.Edge || len(m.State().tokens) > 0 {
		return nil
	}
	_, text, err := m.createToken(ctx, ourselves, TokenSpec{Name: "first", Grants: []Grant{{Permission: Admin}}, NeverExpires: true}, true)
	m.first = text
	return err
}

// ErrTooManyFailures is in the chain of the error that answers an address which has failed
// to authenticate too often.
var ErrTooManyFailures = fmt.Errorf("more than %d failed authentications within a minute", MaxFailedLogins)

// Authenticate returns the caller that a secret belongs to: a token, or what AuthKey makes of one. Its errors do not
// say whether the secret, its age or the address was wrong. An address that has failed too often gets
// ErrTooManyFailures instead, for up to a minute; valid secrets still work from there.
func (m *Manager) Authenticate(secret string, from netip.Addr, requestID string) (Caller, error) {
	if m.original != nil {
		return m.original.Authenticate(secret, from, requestID)
	}
	now := m.now()
	from = from.Unmap().WithZone("")
	if t := m.tokenOf(secret, from, now); t != nil {
		if t.ID != "" {
			m.used.note(t.ID, now)
		}
		return Caller{Token: t.ID, Name: t.Name, Grants: t.Grants, Address: from, RequestID: requestID}, nil
	}
	if !m.fails.add(from, now) {
		return Caller{}, anteroom.Errorf(anteroom.Unavailable, "%w from this address; try again in a minute", ErrTooManyFailures)
	}
	return Caller{}, anteroom.Errorf(anteroom.Denied, "no valid token")
}

func (m *Manager) tokenOf(text string, from netip.Addr, now time.Time) *token {
	if len(text) < authKeyLength || len(text) > 80 {
		return nil
	}
	sum := digest(sha256.Sum256([]byte(text)))
	is := func(s secret) bool { return s.Token == sum || s.Key == sum }
	t := m.State().secrets[sum]
	if t == nil {
		t = m.lent.find(sum, now)
	}
	for _, given := range []*token{m.scraper, m.env} {
		if t == nil && given != nil && slices.ContainsFunc(given.Secrets, is) {
			t = given
		}
	}
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.Secrets, is)
	if i < 0 || over(t.Secrets[i].ExpiresOn, now) || !t.opensFrom(from, now) {
		return nil
	}
	return t
}

// opensFrom reports whether the token may be used from an address now.
func (t *token) opensFrom(from netip.Addr, now time.Time) bool {
	return !over(t.ExpiresOn, now) && (len(t.Networks) == 0 || slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool { return n.Contains(from) }))
}

func over(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// failures counts failed authentications by address and minute.
type failures struct {
	mu     sync.Mutex
	minute int64
	count  map[netip.Prefix]int
}

// maxFailing bounds the addresses counted in a minute; those beyond share one count.
const maxFailing = 10_000

// add counts a failure and reports whether it may be answered.
func (f *failures) add(from netip.Addr, now time.Time) bool {
	bits := 32
	if from.Is6() {
		bits = 64 // what one customer has
	}
	who, _ := from.Prefix(bits) // the zero prefix for an address that is not known
	f.mu.Lock()
	defer f.mu.Unlock()
	if minute := now.Unix() / 60; minute != f.minute || f.count == nil {
		f.minute, f.count = minute, map[netip.Prefix]int{}
	}
	if len(f.count) >= maxFailing && f.count[who] == 0 {
		who = netip.Prefix{}
	}
	f.count[who]++
	return f.count[who] <= MaxFailedLogins
}

// lastUses remembers the minute in which tokens were used.
type lastUses struct {
	mu sync.Mutex
	at map[TokenID]time.Time
}

func (u *lastUses) note(id TokenID, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = map[TokenID]time.Time{}
	}
	u.at[id] = now.Truncate(time.Minute)
}

func (u *lastUses) of(id TokenID) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.at[id]
}

func (m *Manager) shown(t *token) Token {
	out := Token{ID: t.ID, Name: t.Name, Grants: slices.Clone(t.Grants), Networks: slices.Clone(t.Networks),
		CreatedOn: t.CreatedOn, CreatedBy: t.CreatedBy, ExpiresOn: t.ExpiresOn, LastUsed: m.used.of(t.ID)}
	for _, s := range t.Secrets {
		if !over(s.ExpiresOn, m.now()) {
			out.Secrets = append(out.Secrets, TokenSecret{Prefix: s.Prefix, CreatedOn: s.CreatedOn, ExpiresOn: s.ExpiresOn})
		}
	}
	return out
}

// Tokens returns the stored tokens in the order of their creation.
func (m *Manager) Tokens(by Caller) ([]Token, error) {
	if err := by.need(Admin, "", ""); err != nil {
		return nil, err
	}
	out := []Token{}
	for _, t := range m.State().tokens {
		out = append(out, m.shown(t))
	}
	return out, nil
}

// OwnToken returns the token of the caller; that of the environment has no id.
func (m *Manager) OwnToken(by Caller) (Token, error) {
	for _, t := range m.State().tokens {
		if t.ID == by.Token {
			return m.shown(t), nil
		}
	}
	for _, given := range []*token{m.scraper, m.env} {
		if given != nil && by.Token == "" && given.Name == by.Name {
			return m.shown(given), nil
		}
	}
	if t := m.lent.named(by.Name, m.now()); t != nil && by.Token == "" {
		return m.shown(t), nil
	}
	return Token{}, notFound("token", string(by.Token))
}

func (s TokenSpec) check(now time.Time) error {
	var f anteroom.Faults
	add := func(path, problem, fix string) {
		f = append(f, anteroom.Fault{Path: path, Problem: problem, Fix: fix})
	}
	if s.Name == "" || len(s.Name) > anteroom.MaxNameLength || cut(s.Name, anteroom.MaxNameLength) != s.Name || strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' }) {
		add("name", fmt.Sprintf("%.80q is not a name", s.Name), fmt.Sprintf("1 to %d bytes of text that say what the token is for", anteroom.MaxNameLength))
	}
	if len(s.Grants) == 0 || len(s.Grants) > MaxGrants {
		add("grants", fmt.Sprintf("has %d members", len(s.Grants)), fmt.Sprintf("1 to %d", MaxGrants))
	}
	for i, g := range s.Grants {
		at := fmt.Sprintf("grants[%d].", i)
		if !slices.Contains(permissions, g.Permission) {
			add(at+"permission", fmt.Sprintf("%.40q is not known", g.Permission), "scrape, read, edit or admin")
		}
		if (g.Permission == Admin || g.Permission == Scrape) && (g.Zone != "" || g.Room != "") {
			add(at+"zone", "limits the permission "+string(g.Permission), string(g.Permission)+" is for everything; use read or edit for a zone or room")
		}
		if g.Zone != "" && !isID(string(g.Zone)) {
			add(at+"zone", fmt.Sprintf("%.40q is not the id of a zone", g.Zone), "32 hexadecimal digits")
		}
		if g.Room != "" && !isID(string(g.Room)) {
			add(at+"room", fmt.Sprintf("%.40q is not the id of a room", g.Room), "32 hexadecimal digits")
		}
	}
	if len(s.Networks) > MaxNetworks {
		add("networks", fmt.Sprintf("has %d members", len(s.Networks)), fmt.Sprintf("at most %d", MaxNetworks))
	}
	for i, n := range s.Networks {
		if !n.IsValid() {
			add(fmt.Sprintf("networks[%d]", i), "is not a network", "an address or CIDR, like 192.0.2.0/24")
		}
	}
	if over(s.ExpiresOn, now) {
		add("expires_on", "has passed", "use a time in the future")
	}
	return f.Err()
}

func isID(s string) bool { return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" }

// CreateToken makes a token. The secret is returned this once.
func (m *Manager) CreateToken(ctx context.Context, by Caller, spec TokenSpec) (made Token, text string, err error) {
	if err := by.need(Admin, "", ""); err != nil {
		return made, "", err
	}
	return m.createToken(ctx, by, spec, false)
}

// createToken is CreateToken; only says that there must be no other, else none is made.
func (m *Manager) createToken(ctx context.Context, by Caller, spec TokenSpec, only bool) (made Token, text string, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		if err := spec.check(t.now); err != nil {
			return err
		}
		if text = ""; only && len(t.old.tokens) > 0 { // another node was faster
			return nil
		}
		if len(t.old.tokens) >= MaxTokens {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d tokens, the maximum: delete unused ones", len(t.old.tokens))
		}
		text = newSecret()
		one := &token{ID: TokenID(newID()), Made: t.seq(), Name: spec.Name, Grants: slices.Clone(spec.Grants), CreatedOn: t.now, CreatedBy: by.Name,
			ExpiresOn: spec.ExpiresOn.UTC().Truncate(time.Microsecond), Secrets: []secret{secretOf(text, t.now)}}
		for _, n := range spec.Networks {
			one.Networks = append(one.Networks, n.Masked())
		}
		if one.ExpiresOn.IsZero() && !spec.NeverExpires {
			one.ExpiresOn = t.now.Add(DefaultTokenLife)
		}
		made = m.shown(one)
		return t.setToken("token.create", nil, one)
	})
	return made, text, err
}

func (t *tx) setToken(operation string, before, after *token) error {
	t.next.setTokens(put(t.next.tokens, after, func(o *token) bool { return o.ID == after.ID }))
	t.note(operation, string(after.ID), after.Name, before, after)
	return t.put(tokenPrefix+string(after.ID), tokenDocument{t.header(), *after})
}

func (s *State) token(id TokenID) (*token, error) { return find(s.tokens, "token", string(id)) }

// RotateToken gives a token a new secret. The previous one stays valid for the overlap, up to MaxTokenOverlap; zero
// ends it now.
func (m *Manager) RotateToken(ctx context.Context, by Caller, id TokenID, overlap time.Duration) (made Token, text string, err error) {
	if err := by.need(Admin, "", ""); err != nil {
		return made, "", err
	}
	if overlap < 0 || overlap > MaxTokenOverlap {
		return made, "", anteroom.Faults{{Path: "overlap", Problem: fmt.Sprintf("%v is out of range", overlap), Fix: fmt.Sprintf("0 to %v", MaxTokenOverlap)}}.Err()
	}
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.old.token(id)
		if err != nil {
			return err
		}
		one := *old
		text = newSecret()
		one.Secrets = []secret{secretOf(text, t.now)}
		if last := old.Secrets[0]; overlap > 0 {
			last.ExpiresOn = t.now.Add(overlap)
			one.Secrets = append(one.Secrets, last)
		}
		made = m.shown(&one)
		return t.setToken("token.rotate", old, &one)
	})
	return made, text, err
}

// DeleteToken deletes a token. It is invalid immediately.
func (m *Manager) DeleteToken(ctx context.Context, by Caller, id TokenID) error {
	return m.changeAll(ctx, by, Admin, func(t *tx) error {
		old, err := t.old.token(id)
		if err != nil {
			return err
		}
		t.next.setTokens(without(t.next.tokens, func(o *token) bool { return o.ID == id }))
		t.note("token.delete", string(id), old.Name, *old, nil)
		t.drop(tokenPrefix + string(id))
		return nil
	})
}

// RotateKeys makes a new ticket key. No visitor loses a place, unless the earlier keys are to be forgotten: then every visitor
// starts over.
func (m *Manager) RotateKeys(ctx context.Context, by Caller, forget bool) error {
	if err := by.need(Admin, "", ""); err != nil {
		return err
	}
	if m.cfg.Keys == nil {
		return anteroom.Errorf(anteroom.Unavailable, "this process has no ticket keys of its own")
	}
	var what any
	if forget {
		what = map[string]bool{"forget": true}
	}
	if err := m.act(ctx, by, "keys.rotate", "", "", "", what); err != nil {
		return err
	}
	return m.cfg.Keys.Rotate(ctx, forget)
}
