package shop

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/anteroom/anteroom/internal/markup"
)

const (
	cartCookie = "demo_cart"
	maxCart    = 12 // things in a cart
)

func (s *Shop) routes(static fs.FS) {
	files := http.FileServerFS(static)
	s.mux.HandleFunc("GET /{$}", s.list)
	s.mux.HandleFunc("GET /product/{name}", s.product)
	s.mux.HandleFunc("GET /picture/{file}", s.picture)
	s.mux.HandleFunc("GET /cart", s.cart)
	s.mux.HandleFunc("POST /cart", s.addToCart)
	s.mux.HandleFunc("GET /checkout", s.checkout)
	s.mux.HandleFunc("POST /checkout", s.order)
	s.mux.HandleFunc("POST /leave", s.leave)
	s.mux.HandleFunc("GET /ticker", s.ticker)
	s.mux.Handle("GET /echo", echo())
	s.mux.HandleFunc("GET /headers", s.headers)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	asset := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		files.ServeHTTP(w, r)
	}
	s.mux.HandleFunc("GET /shop.css", asset)
	s.mux.HandleFunc("GET /shop.js", asset)
	s.mux.HandleFunc("/", s.missing)
}

// show answers with a page that write fills.
func (s *Shop) show(w http.ResponseWriter, r *http.Request, status int, title string, cart []product, write func(*markup.Page)) {
	var p markup.Page
	s.head(&p, title, Subject(r.Header.Get(s.cfg.ProofHeader)) != "", len(cart), write)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.WriteHeader(status)
	w.Write(p.Bytes())
}

func (s *Shop) missing(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusNotFound, "Nothing here", inCart(r), nothingHere)
}

func (s *Shop) list(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == "application/json" {
		// What the documentation of waiting rooms advises origins to say to apps.
		writeJSON(w, map[string]any{
			"cfWaitingRoom": map[string]bool{"inWaitingRoom": false},
			"inside":        s.Inside(),
			"stock":         s.stock.all(),
		})
		return
	}
	s.show(w, r, http.StatusOK, "The Little Kiln", inCart(r), s.shelf)
}

func (s *Shop) product(w http.ResponseWriter, r *http.Request) {
	p, ok := find(r.PathValue("name"))
	if !ok {
		s.missing(w, r)
		return
	}
	s.show(w, r, http.StatusOK, p.Name, inCart(r), func(to *markup.Page) { s.piece(to, p) })
}

func (s *Shop) picture(w http.ResponseWriter, r *http.Request) {
	name, isSVG := strings.CutSuffix(r.PathValue("file"), ".svg")
	p, ok := find(name)
	if !ok || !isSVG {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	fmt.Fprint(w, p.picture())
}

func inCart(r *http.Request) []product {
	c, err := r.Cookie(cartCookie)
	if err != nil {
		return nil
	}
	var out []product
	for slug := range strings.SplitSeq(c.Value, ".") {
		if p, ok := find(slug); ok && len(out) < maxCart {
			out = append(out, p)
		}
	}
	return out
}

func setCart(w http.ResponseWriter, cart []product) {
	slugs := make([]string, len(cart))
	for i, p := range cart {
		slugs[i] = p.Slug
	}
	c := &http.Cookie{Name: cartCookie, Value: strings.Join(slugs, "."), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if len(cart) == 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (s *Shop) cart(w http.ResponseWriter, r *http.Request) {
	cart := inCart(r)
	s.show(w, r, http.StatusOK, "Your cart", cart, func(p *markup.Page) { basket(p, cart) })
}

func (s *Shop) addToCart(w http.ResponseWriter, r *http.Request) {
	p, ok := find(r.FormValue("product"))
	if !ok {
		http.Error(w, "product: there is no such thing in this shop", http.StatusBadRequest)
		return
	}
	cart := inCart(r)
	if len(cart) < maxCart {
		cart = append(cart, p)
	}
	setCart(w, cart)
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	cart := inCart(r)
	s.show(w, r, http.StatusOK, "Checkout", cart, func(p *markup.Page) { till(p, cart) })
}

func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	cart := inCart(r)
	if len(cart) == 0 {
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
		return
	}
	for _, p := range cart {
		s.stock.sell(p.Slug)
	}
	setCart(w, nil)
	s.show(w, r, http.StatusOK, "Thank you", nil, func(p *markup.Page) { thanks(p, len(cart)) })
}

func (s *Shop) leave(w http.ResponseWriter, r *http.Request) {
	s.people.gone(Subject(r.Header.Get(s.cfg.ProofHeader)))
	w.Header().Set("Cf-Waiting-Room-Command", "revoke")
	s.show(w, r, http.StatusOK, "Goodbye", inCart(r), goodbye)
}

func (s *Shop) headers(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, map[string]any{"method": r.Method, "host": r.Host, "target": r.RequestURI, "remote": r.RemoteAddr, "header": r.Header})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "private, no-store")
	json.NewEncoder(w).Encode(v)
}
