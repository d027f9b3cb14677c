package page

import "sync"

// verifying is the page at [VerifyPath] and its policy.
type verifying struct{ policy, page string }

var verifier = sync.OnceValue(func() verifying {
	style, script := bare("asset/page.css")+bare("asset/verify.css"), bare("asset/verify.js")
	raw, err := files.ReadFile("asset/verify.html")
	if err != nil {
		panic(err) // embedded: cannot be missing
	}
	return verifying{
		policy: "default-src 'none'; style-src 'sha256-" + hash(style) + "'; script-src 'sha256-" + hash(script) +
			"'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		page: `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
			`<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark"><link rel="icon" href="` + icon + `">` +
			"<style>" + style + "</style><title>Check a shuffle – Anteroom</title></head><body>" + string(raw) + "<script>" + script + "</script></body></html>\n",
	}
})

// AppendVerify appends the page in which a visitor recomputes a shuffle from a receipt and
// the list of everybody who took part. It is the same for everybody and in English.
func AppendVerify(dst []byte) []byte { return append(dst, verifier().page...) }

// VerifyPolicy returns the Content-Security-Policy of [AppendVerify].
func VerifyPolicy() string { return verifier().policy }
