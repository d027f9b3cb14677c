package shop

import (
	"strconv"

	"github.com/anteroom/anteroom/internal/markup"
)

// head writes a page with what stands around each: the cart's size, and how many others shop.
func (s *Shop) head(p *markup.Page, title string, admitted bool, inCart int, write func(*markup.Page)) {
	p.Put(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{} · The Little Kiln</title>
<link rel="icon" href="/picture/dawn-mug.svg">
<link rel="stylesheet" href="/shop.css">
<script src="/shop.js" defer></script>
<header>
<a class="name" href="/">The Little Kiln</a>
<nav><a href="/cart">Cart`, title)
	if inCart > 0 {
		p.Put(` ({})`, strconv.Itoa(inCart))
	}
	p.Put("</a></nav>\n</header>\n")
	inside := s.Inside()
	switch {
	case !admitted:
		p.Put("<p class=\"inside none\" id=\"inside\">No waiting room stands in front of this page.</p>\n")
	case inside == 1:
		p.Put("<p class=\"inside\" id=\"inside\"><b>You are in.</b> <span id=\"people\">Nobody else is shopping now.</span></p>\n")
	default:
		p.Put("<p class=\"inside\" id=\"inside\"><b>You are in.</b> <span id=\"people\">{} people are shopping now.</span></p>\n", strconv.Itoa(inside))
	}
	p.Put("<main>\n")
	write(p)
	p.Put("</main>\n<footer>A demo. Nothing is for sale and nothing is sent. ")
	if admitted {
		p.Put(`<form method="post" action="/leave"><button class="link">Leave the shop</button></form>`)
	}
	p.Put("</footer>\n")
}

func (s *Shop) shelf(p *markup.Page) {
	p.Put(`<h1>The spring firing</h1>
<p class="lead">Eight pieces, one kiln, and more people at the door than fit between the shelves.</p>
<ul class="goods">
`)
	stock := s.stock.all()
	for _, g := range goods {
		p.Put(`<li><a href="/product/{}"><img src="/picture/{}.svg" alt="" width="200" height="200"><b>{}</b> <span>{}</span> <small data-stock="{}">{} left</small></a>
`, g.Slug, g.Slug, g.Name, price(g.Cents), g.Slug, strconv.Itoa(stock[g.Slug]))
	}
	p.Put("</ul>\n")
}

func (s *Shop) piece(p *markup.Page, g product) {
	p.Put(`<article>
<img src="/picture/{}.svg" alt="{}" width="360" height="360">
<div>
<h1>{}</h1>
<p class="lead">{}</p>
<p class="price">{} <small data-stock="{}">{} left</small></p>
<form method="post" action="/cart"><input type="hidden" name="product" value="{}"><button>Put in the cart</button></form>
<p><a href="/">Back to the shelf</a></p>
</div>
</article>
`, g.Slug, g.Name, g.Name, g.Text, price(g.Cents), g.Slug, strconv.Itoa(s.stock.all()[g.Slug]), g.Slug)
}

func together(cart []product) string {
	cents := 0
	for _, g := range cart {
		cents += g.Cents
	}
	return price(cents)
}

func basket(p *markup.Page, cart []product) {
	p.Put("<h1>Your cart</h1>\n")
	if len(cart) == 0 {
		p.Put("<p class=\"lead\">Still empty. <a href=\"/\">The shelf is over there.</a></p>\n")
		return
	}
	p.Put("<table>\n")
	for _, g := range cart {
		p.Put("<tr><td><img src=\"/picture/{}.svg\" alt=\"\" width=\"56\" height=\"56\"><td><a href=\"/product/{}\">{}</a><td class=\"num\">{}\n", g.Slug, g.Slug, g.Name, price(g.Cents))
	}
	p.Put(`<tr class="sum"><td><td>Together<td class="num">{}
</table>
<p><a class="button" href="/checkout">To the checkout</a></p>
`, together(cart))
}

func till(p *markup.Page, cart []product) {
	p.Put("<h1>Checkout</h1>\n")
	if len(cart) == 0 {
		p.Put("<p class=\"lead\">Nothing to pay for. <a href=\"/\">The shelf is over there.</a></p>\n")
		return
	}
	p.Put(`<p class="lead">{} in the cart, {} together.</p>
<form method="post" action="/checkout" class="fields">
<label>Name <input name="name" autocomplete="off" maxlength="80"></label>
<label>Where to <input name="address" autocomplete="off" maxlength="200"></label>
<button>Order (it is a demo)</button>
</form>
`, strconv.Itoa(len(cart)), together(cart))
}

func thanks(p *markup.Page, ordered int) {
	p.Put(`<h1>Thank you</h1>
<p class="lead">{} × wrapped with care. It would be on its way by now.</p>
<p><a href="/">Back to the shelf</a></p>
`, strconv.Itoa(ordered))
}

func goodbye(p *markup.Page) {
	p.Put(`<h1>Goodbye</h1>
<p class="lead">Your place is free for the next visitor.</p>
<p><a href="/">Come back</a> and wait again.</p>
`)
}

func nothingHere(p *markup.Page) {
	p.Put(`<h1>Nothing here</h1>
<p class="lead">This shelf is empty. <a href="/">The others are not.</a></p>
`)
}
