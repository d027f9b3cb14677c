package shop

import (
	"fmt"
	"strings"
	"sync"
)

// product is one thing on sale. Pictures are drawn from its shape and colours.
type product struct {
	Slug, Name, Text string
	Cents            int
	Body, Glaze      string // colours
	Shape            string // SVG path in a box of 200 by 200
}

// Every piece is hand-made, so nothing here is made twice: a reason to queue.
var goods = [...]product{
	{"dawn-mug", "Dawn mug", "Thrown in one go, glazed in two. Holds a good third of a litre and a bad morning.", 3400, "#e8b48c", "#f7e3d0", "M55 60h75v20h14a22 22 0 0 1 0 54h-16q-4 22-22 22H79q-24 0-24-26zM130 96v24h12a12 12 0 0 0 0-24z"},
	{"tide-bowl", "Tide bowl", "The glaze runs like a shoreline. For ramen, or for keys.", 4800, "#5f8fa6", "#cfe4ea", "M30 80h140q0 66-50 74v8H80v-8q-50-8-50-74z"},
	{"moss-vase", "Moss vase", "A narrow neck for one branch. It does not need more.", 7200, "#7d9467", "#dbe5cf", "M84 30h32v34q34 22 34 58 0 40-24 44H74q-24-4-24-44 0-36 34-58z"},
	{"ember-teapot", "Ember teapot", "Pours without a drip; we tested it on white linen.", 12800, "#b5583c", "#f0cdbd", "M72 66q0-16 28-16t28 16q30 10 30 44l22-18v18l-24 34q-8 16-28 16H72q-34 0-34-44 0-40 34-50zM92 36h16v12H92z"},
	{"snow-plate", "Snow plate", "White on white, with one thumb print left in.", 3900, "#c9ced6", "#f4f6f9", "M20 96h160q-6 34-50 36H70q-44-2-50-36z"},
	{"night-cup", "Night cup", "Almost black outside, quite blue inside. Espresso size.", 2600, "#33405c", "#aab8d8", "M60 70h80q2 66-18 80H78q-20-14-18-80z"},
	{"straw-jar", "Straw jar", "With a lid that sighs when it closes.", 8600, "#c79f4b", "#f3e5c3", "M70 44h60v16H70zM58 64h84q14 20 14 52 0 44-24 44H68q-24 0-24-44 0-32 14-52z"},
	{"pebble-set", "Pebble set", "Five small dishes that nest. Sold together; they miss each other.", 5400, "#8d7f78", "#e4dcd7", "M26 120h60q0 30-30 34-30-4-30-34zM76 92h66q0 32-33 36-33-4-33-36zM116 128h58q0 26-29 30-29-4-29-30z"},
}

func find(slug string) (product, bool) {
	for _, p := range goods {
		if p.Slug == slug {
			return p, true
		}
	}
	return product{}, false
}

func (p product) picture() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200" role="img" aria-label=%q>`, p.Name)
	fmt.Fprintf(&b, `<rect width="200" height="200" fill=%q/><ellipse cx="100" cy="166" rx="76" ry="9" fill="#0002"/>`, p.Glaze)
	fmt.Fprintf(&b, `<path d=%q fill=%q fill-rule="evenodd"/><path d="M0 0h200v70q-60 26-110 8T0 84z" fill="#fff" opacity=".12"/></svg>`, p.Shape, p.Body)
	return b.String()
}

func price(cents int) string { return fmt.Sprintf("€ %d.%02d", cents/100, cents%100) }

// stock is how many of each are left. The kiln is opened again when one runs out.
type stock struct {
	mu   sync.Mutex
	left [len(goods)]int
}

const firing = 40 // pieces of a kind in one firing

func newStock() *stock {
	s := &stock{}
	for i := range s.left {
		s.left[i] = firing
	}
	return s
}

func (s *stock) sell(slug string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range goods {
		if p.Slug == slug {
			s.left[i]--
			if s.left[i] == 0 {
				s.left[i] = firing
			}
		}
	}
}

func (s *stock) all() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(goods))
	for i, p := range goods {
		out[p.Slug] = s.left[i]
	}
	return out
}
