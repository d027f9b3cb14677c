// Package signin signs operators in at an OpenID Connect provider: the authorization code flow with PKCE (OpenID Connect Core
// 1.0, RFC 7636). It finds out who somebody is and what the provider says of them; what they may do is decided elsewhere.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/anteroom/anteroom"
)

const (
	// within bounds one exchange with the provider, and maxAnswer an answer of it, in bytes.
	within    = 10 * time.Second
	maxAnswer = 1 << 20
	// maxValues and maxValue bound what is read of the claim: its values, and the bytes of one.
	maxValues = 1000
	maxValue  = 256
)

// Config names the provider. Issuer, ClientID and Return are required.
type Config struct {
	Issuer       string // its URL, as it says itself
	ClientID     string
	ClientSecret string         // empty for a public client
	Return       string         // where it sends the browser back to
	Scopes       []string       // besides openid, profile and email
	Claim        string         // whose values say which roles somebody has; empty means that nobody has any
	CA           *x509.CertPool // that vouch for it; nil means those of the system
}

// Provider signs people in. Safe for concurrent use.
type Provider struct {
	cfg    Config
	client *http.Client

	mu    sync.Mutex
	found *oidc.Provider // nil until it has been asked
}

// New returns a provider, which is asked when somebody comes: it need not be there yet.
func New(cfg Config) *Provider {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = &tls.Config{RootCAs: cfg.CA}
	return &Provider{cfg: cfg, client: &http.Client{Timeout: within, Transport: bounded{base}}}
}

// bounded cuts answers off.
type bounded struct{ base http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.base.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Attempt is what has to be remembered of a sign-in between the way to the provider and back, and shown to nobody.
type Attempt struct{ State, nonce, verifier string }

// Person is who has signed in.
type Person struct {
	// Name is a verified email address, or else the name at the provider, or else its identifier of the person: 1 to
	// anteroom.MaxNameLength bytes.
	Name string
	// Has are the values of Config.Claim.
	Has []string
}

// Begin returns where to send the browser. The error is of kind Unavailable if the provider does not answer.
func (p *Provider) Begin(ctx context.Context) (to string, a Attempt, err error) {
	found, err := p.ask(ctx)
	if err != nil {
		return "", a, err
	}
	a = Attempt{State: random(), nonce: random(), verifier: oauth2.GenerateVerifier()}
	return p.flow(found).AuthCodeURL(a.State, oidc.Nonce(a.nonce), oauth2.S256ChallengeOption(a.verifier)), a, nil
}

// End takes the code with which the browser has come back from an attempt, and returns who it is. The error is of kind
// Denied if the code, or the token that it is good for, is not valid.
func (p *Provider) End(ctx context.Context, a Attempt, code string) (who Person, err error) {
	found, err := p.ask(ctx)
	if err != nil {
		return who, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.flow(found).Exchange(ctx, code, oauth2.VerifierOption(a.verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < 500 {
		return who, anteroom.Errorf(anteroom.Denied, "the provider does not take the code: %w", err)
	}
	if err != nil {
		return who, anteroom.Errorf(anteroom.Unavailable, "the provider does not answer: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return who, anteroom.Errorf(anteroom.Denied, "the ID token is not valid: %w", err)
	}
	if id.Nonce != a.nonce {
		return who, anteroom.Errorf(anteroom.Denied, "the ID token is of another sign-in")
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return who, anteroom.Errorf(anteroom.Denied, "the claims of the ID token cannot be read: %w", err)
	}
	if _, told := claims[p.cfg.Claim]; !told && found.UserInfoEndpoint() != "" {
		if err := p.more(ctx, found, tokens, id.Subject, claims); err != nil {
			return who, err
		}
	}
	who = Person{Name: nameOf(id.Subject, claims), Has: values(claims[p.cfg.Claim])}
	return who, nil
}

// more adds what the provider says of the person elsewhere: many keep the ID token short.
func (p *Provider) more(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]any) error {
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "the provider does not say who it is: %w", err)
	}
	if info.Subject != subject { // OpenID Connect Core 1.0, section 5.3.2
		return anteroom.Errorf(anteroom.Denied, "the provider speaks of two people")
	}
	said := map[string]any{}
	if err := info.Claims(&said); err != nil {
		return anteroom.Errorf(anteroom.Denied, "what the provider says of the person cannot be read: %w", err)
	}
	for name, value := range said {
		if _, told := claims[name]; !told {
			claims[name] = value
		}
	}
	return nil
}

// ask returns the provider as it describes itself.
func (p *Provider) ask(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// Its keys are fetched with this context for as long as the process lives.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.cfg.Issuer)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the provider at %s does not describe itself: %w", p.cfg.Issuer, err)
	}
	p.found = found
	return found, nil
}

func (p *Provider) flow(found *oidc.Provider) *oauth2.Config {
	scopes := append([]string{oidc.ScopeOpenID, "profile", "email"}, p.cfg.Scopes...)
	slices.Sort(scopes)
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: p.cfg.Return, Scopes: slices.Compact(scopes)}
}

// nameOf is the first of what is a name. An address counts only if the provider has verified it: elsewhere it could be
// anybody's.
func nameOf(subject string, claims map[string]any) string {
	names := []any{claims["preferred_username"], claims["name"], subject}
	if verified, _ := claims["email_verified"].(bool); verified {
		names = slices.Insert(names, 0, claims["email"])
	}
	for _, one := range names {
		text, _ := one.(string)
		text = strings.ToValidUTF8(strings.TrimSpace(text), "")
		if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			continue
		}
		for len(text) > anteroom.MaxNameLength {
			runes := []rune(text)
			text = string(runes[:len(runes)-1])
		}
		return text
	}
	return fmt.Sprintf("%.32x", subject)
}

// values are those of a claim: a text, several in a list, or words with spaces between.
func values(claim any) (out []string) {
	add := func(text string) {
		if text != "" && len(text) <= maxValue && len(out) < maxValues {
			out = append(out, text)
		}
	}
	switch c := claim.(type) {
	case string:
		add(c)
		if words := strings.Fields(c); len(words) > 1 {
			for _, one := range words {
				add(one)
			}
		}
	case []any:
		for _, one := range c {
			if text, ok := one.(string); ok {
				add(text)
			}
		}
	}
	return out
}

func random() string {
	var b [24]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}
