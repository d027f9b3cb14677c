module github.com/anteroom/anteroom/e2e

go 1.27.4

replace github.com/anteroom/anteroom => ../

require (
	github.com/anteroom/anteroom v0.0.0-00010101000000-000000000000
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	golang.org/x/net v0.62.0
)

require (
	github.com/cbroglie/mustache v1.4.2 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
