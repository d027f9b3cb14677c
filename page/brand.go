package page

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"strings"

	"github.com/anteroom/anteroom"
)

// LogoPath is the folder of the rooms' logos, on every host.
const LogoPath = "/.well-known/anteroom/logo/"

// Brand is what makes the built-in page that of a site: style, name, title and logo of a room.
type Brand struct {
	// Logo and LogoType are what to serve at LogoURL; empty without one.
	Logo              []byte
	LogoType, LogoURL string

	name, style, header    string // HTML
	policies, formPolicies [numChallenges]string
	leavePolicy            string
}

// NewBrand returns the brand of a room; nil when it has none.
func NewBrand(r *anteroom.Room) *Brand {
	if r.Branding == (anteroom.Branding{}) {
		return nil
	}
	b := new(Brand)
	for _, text := range []string{r.Title, r.SiteName} {
		if text != "" {
			b.name += " – " + html.EscapeString(text)
		}
	}
	data, kind, err := r.Logo()
	if err == nil && data != nil { // a room that was checked has no other
		sum := sha256.Sum256(data)
		b.Logo, b.LogoType, b.LogoURL = data, kind, LogoPath+string(r.ID)+"/"+hex.EncodeToString(sum[:8])
	}
	var header strings.Builder
	if b.Logo != nil {
		header.WriteString(`<img src="` + b.LogoURL + `" alt="">`)
	}
	for _, text := range []string{r.SiteName, r.Title} {
		if text != "" {
			header.WriteString(`<p dir="auto">` + html.EscapeString(text) + `</p>`)
		}
	}
	if header.Len() > 0 {
		b.header = `<header>` + header.String() + `</header>`
	}
	style := ""
	for _, c := range []struct{ color, scheme string }{{r.Color, "light"}, {r.ColorDark, "dark"}} {
		if c.color != "" {
			style += "@media (prefers-color-scheme:" + c.scheme + "){:root{--deep:" + c.color + "}}"
		}
	}
	if style != "" {
		style += "main{border-top:.3rem solid var(--deep)}"
		b.style = "<style>" + style + "</style>"
	}
	also := " 'sha256-" + hash(style) + "'"
	for kind, policy := range library().policies {
		b.policies[kind] = branded(policy, also)
		b.formPolicies[kind] = branded(library().formPolicies[kind], also)
	}
	b.leavePolicy = branded(library().leavePolicy, also)
	return b
}

// branded is a policy that also allows a style, and pictures of the same host.
func branded(policy, style string) string {
	return strings.NewReplacer("; script-src", style+"; script-src", "img-src data:", "img-src data: 'self'").Replace(policy)
}
