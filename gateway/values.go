package gateway

import "github.com/anteroom/anteroom/page"

// Header values that are written as they are.
var (
	valueTrailers       = []string{"trailers"}
	valueClose          = []string{"close"}
	valueTextPlain      = []string{"text/plain; charset=utf-8"}
	valueTextHTML       = []string{page.HTMLType}
	valueScript         = []string{"text/javascript; charset=utf-8"}
	valueJSON           = []string{page.JSONType}
	valueNoStore        = []string{"private, no-store, max-age=0"}
	valueCDN            = []string{"no-store"}
	valueNosniff        = []string{"nosniff"}
	valueNoindex        = []string{"noindex"}
	valueVary           = []string{"Cookie, Accept, Accept-Encoding, Accept-Language, Sec-Fetch-Dest"}
	valueGzip           = []string{"gzip"}
	valueAllowRead      = []string{"GET, HEAD"}
	valueRetrySoon      = []string{"5"}
	valueStream         = []string{page.StreamType}
	valueNo             = []string{"no"}
	valuePrivate        = []string{"private"}
	valuePrivateNoStore = []string{"private, no-store"}
)
