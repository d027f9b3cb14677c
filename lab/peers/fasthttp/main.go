// Command fasthttp is a proxy of github.com/valyala/fasthttp that forwards and does nothing else, for the comparison of
// `make bench-peers`: what Go can do past net/http, without the hygiene of a gateway.
//
//	fasthttp 127.0.0.1:8080 127.0.0.1:3000
package main

import (
	"log"
	"os"

	"github.com/valyala/fasthttp"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: fasthttp ADDRESS ORIGIN")
	}
	origin := &fasthttp.HostClient{Addr: os.Args[2], MaxConns: 256}
	log.Fatal(fasthttp.ListenAndServe(os.Args[1], func(ctx *fasthttp.RequestCtx) {
		ctx.Request.Header.Set("X-Forwarded-For", ctx.RemoteIP().String())
		ctx.Request.Header.Set("X-Forwarded-Proto", "http")
		ctx.Request.Header.Del("Connection")
		if err := origin.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error("The website is not responding at the moment.", fasthttp.StatusBadGateway)
		}
		ctx.Response.Header.Del("Connection")
	}))
}
