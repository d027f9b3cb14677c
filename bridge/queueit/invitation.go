package queueit

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/invite"
)

const (
	// invitationParameter carries an enqueue token.
	invitationParameter = "enqueuetoken"
	// maxInvitation bounds an enqueue token, in bytes.
	maxInvitation = 4 << 10
	// storeTime bounds how long a visitor waits until an invitation is stored as used.
	storeTime = 5 * time.Second
	// usedInvitation is for one who comes with the invitation of another, or has spent it.
	usedInvitation = "This invitation was used, has expired, or is for another event"
)

// invitation is an enqueue token of the version QT1, by which the operator's application decides who may join.
type invitation struct {
	Type      string `json:"typ"`
	Encrypted string `json:"enc"`
	Expires   *int64 `json:"exp"` // milliseconds since 1970; nil: never
	ID        string `json:"ti"`  // is used once
	Customer  string `json:"c"`
	Event     string `json:"e"` // empty: for all of the customer
	payload   []byte // JSON; empty: none
}

var errInvitation = anteroom.Errorf(anteroom.Denied, "the enqueue token is not valid")

// readInvitation verifies an enqueue token. Its hash is no HMAC and its cipher has no tag, so everything that can be checked
// is: the payload has to be JSON under an exact padding.
func readInvitation(text, secret string) (i invitation, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(text) > maxInvitation {
		return i, errInvitation
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1] + secret))
	if subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(parts[2])) != 1 {
		return i, errInvitation
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	payload, bad := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || bad != nil || json.Unmarshal(header, &i) != nil || i.Type != "QT1" || i.Encrypted != "AES256" || i.ID == "" || i.Customer == "" {
		return i, errInvitation
	}
	if len(payload) == 0 {
		return i, nil
	}
	key, iv := sha256.Sum256([]byte(secret)), md5.Sum([]byte(i.ID))
	if len(payload)%aes.BlockSize != 0 {
		return i, errInvitation
	}
	cipher.NewCBCDecrypter(bridge.Block(key), iv[:]).CryptBlocks(payload, payload)
	n := int(payload[len(payload)-1])
	if n < 1 || n > aes.BlockSize || strings.Count(string(payload[len(payload)-n:]), string([]byte{byte(n)})) != n {
		return i, errInvitation
	}
	if i.payload = payload[:len(payload)-n]; !json.Valid(i.payload) {
		return i, errInvitation
	}
	return i, nil
}

// invited exchanges an enqueue token for a ticket, with which the visitor comes again, and answers with false. It lets all others through
// to the room, which asks for an invitation (see [Event.Bridged]), and so everybody whose ticket was made for one.
func (b *Bridge) invited(e *Event, room *anteroom.Room, live Live, w http.ResponseWriter, r *http.Request) bool {
	q, now, in := r.URL.Query(), time.Now(), live.Settings()
	if !q.Has(invitationParameter) || !in.InviteOnly || in.Suspended || in.Draining || in.QueueingMethod == anteroom.Passthrough || in.QueueingMethod == anteroom.Reject {
		return true
	}
	bridged := e.Bridged(*room)
	scope, err := route.Cookie(bridged, b.cfg.CookieName)
	if err != nil {
		say(w, http.StatusServiceUnavailable, "The waiting room is not ready", "")
		return false
	}
	keys := b.cfg.Keys()
	sealer, mark := keys.Sealer(room.Zone, room.ID, scope.Name), gateway.InviteMark(keys, room.ID)
	for _, c := range r.CookiesNamed(scope.Name) {
		if t, result := sealer.Open(c.Value); result == ticket.OK && mark.Has(t.ID) {
			return true
		}
	}
	i, err := readInvitation(q.Get(invitationParameter), e.Secret)
	over := i.Expires != nil && *i.Expires <= now.UnixMilli()
	if err != nil || over || r.Method != http.MethodGet || isAhead(r) || !strings.EqualFold(i.Customer, e.Customer) || i.Event != "" && !strings.EqualFold(i.Event, e.ID) {
		say(w, http.StatusForbidden, usedInvitation, "")
		return false
	}
	if err := b.spend(r.Context(), e, i, now); err != nil {
		status := http.StatusForbidden
		if !errors.Is(err, invite.ErrSpent) {
			b.warn("an invitation could not be stored", "event", e.ID, "error", err)
			status = http.StatusServiceUnavailable
		}
		say(w, status, usedInvitation, "")
		return false
	}
	t := gateway.InvitedTicket(mark, rand.Text(), live.Now())
	if room.Bind == anteroom.BindIPPrefix {
		t.Bind = keys.BindAddr(b.cfg.Gateway().Client(r))
	}
	c := http.Cookie{Name: scope.Name, Value: string(sealer.Seal(nil, t)), Path: scope.Path, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: e.URL.Scheme == "https"}
	w.Header().Add("Set-Cookie", c.String())
	redirect(w, r.URL.RequestURI())
	return false
}

// spend notes, for as long as it is valid, that an invitation was used. The error is invite.ErrSpent if it had been.
func (b *Bridge) spend(ctx context.Context, e *Event, i invitation, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	sum := sha256.Sum256([]byte(i.ID))
	u := invite.Use{Key: "bridge.queueit." + e.Customer + "." + e.ID + "." + hex.EncodeToString(sum[:]), Most: 1, Now: now}
	if i.Expires != nil {
		u.Until = time.UnixMilli(*i.Expires)
	}
	return invite.Spend(ctx, b.cfg.Space, u)
}
