package api

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// Authenticate returns who sent a request, by the secret that it carries. manager is Manager.Authenticate, and id is that of
// the request. The error is an answer for SendError.
func Authenticate(manager func(secret string, from netip.Addr, id string) (manage.Caller, error), r *http.Request, id string) (manage.Caller, error) {
	secret, err := credentials(r)
	if err != nil {
		return manage.Caller{}, err
	}
	by, err := manager(secret, AddressOf(r), id)
	if err != nil {
		return manage.Caller{}, unknown(err)
	}
	return by, nil
}

// credentials returns the secret that the request carries, in whichever style: a bearer
// token, or a token in the place of an e-mail's global key. The e-mail says nothing here.
func credentials(r *http.Request) (secret string, err error) {
	malformed := Refuse(http.StatusBadRequest, CodeHeaders, "Invalid request headers")
	for _, name := range []string{"Authorization", "X-Auth-Key", "X-Auth-Email", "X-Auth-User-Service-Key"} {
		if len(r.Header.Values(name)) > 1 {
			return "", malformed
		}
	}
	if a := r.Header.Get("Authorization"); a != "" {
		scheme, token, _ := strings.Cut(a, " ")
		if !strings.EqualFold(scheme, "Bearer") || !isToken(token) {
			return "", malformed
		}
		return token, nil
	}
	key, email := r.Header.Get("X-Auth-Key"), r.Header.Get("X-Auth-Email")
	if key != "" || email != "" {
		if !isToken(key) || email == "" {
			return "", malformed
		}
		return key, nil
	}
	if key = r.Header.Get("X-Auth-User-Service-Key"); key != "" {
		if !isToken(key) {
			return "", malformed
		}
		return key, nil
	}
	p := Refuse(http.StatusUnauthorized, CodeDenied, "Authentication error")
	p.Header = [2]string{"WWW-Authenticate", "Bearer"}
	return "", p
}

func isToken(s string) bool {
	const most = 256
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// AddressOf returns the address that the request came from.
func AddressOf(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr)
	return ap.Addr().Unmap()
}

// unknown is the answer to a secret that is nobody's. It does not say what is wrong with it.
func unknown(err error) error {
	switch {
	case errors.Is(err, manage.ErrTooManyFailures):
		p := Refuse(http.StatusTooManyRequests, CodeThrottled, "Please wait: there were "+manage.ErrTooManyFailures.Error())
		p.Header = [2]string{"Retry-After", "60"}
		return p
	case anteroom.KindOf(err) == anteroom.Denied:
		return Refuse(http.StatusForbidden, CodeDenied, "Authentication error")
	}
	return err
}
