package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

// An operator makes codes in the dashboard, and visitors enter them, with and without JavaScript. The code in a link is filled in and not
// spent before the visitor presses the button.
func TestInviteCodesFromTheDashboardToTheShop(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 5, "new_users_per_minute": 5, "invite_only": true})
	d := sitDown(t, o, operatorToken)
	d.goes("/rooms/127.0.0.1/checkout/invites")
	d.says("No invite codes")
	d.presses("New codes")
	d.fill("name", "members")
	d.fill("count", "2")
	d.presses("Make codes")
	d.becomes(10*time.Second, `(`+dialogText+`).includes('These codes are shown only once')`)
	codes := strings.Fields(eval[string](d.tab, `document.querySelector('dialog[open] .snippet pre').innerText`))
	if len(codes) != 2 || len(codes[0]) != 19 {
		t.Fatalf("the dialog has %q", codes)
	}
	d.presses("I have saved them")
	d.becomes(10*time.Second, `document.querySelector('main table')?.innerText.includes('members')`)
	if strings.Contains(eval[string](d.tab, `document.documentElement.outerHTML`), codes[0]) {
		t.Error("a code is still in the page")
	}

	script := axe(t)
	for i, scripts := range []bool{true, false} {
		b := open(t)
		if !scripts {
			do(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		}
		address := o.url("/product/dawn-mug?color=red")
		b.visit(address)
		b.becomes(10*time.Second, `document.querySelector('h1').textContent == 'By invitation only'`)
		enter := func(code string) {
			b.becomes(10*time.Second, fmt.Sprintf(`(e => e && (e.value = '%s', document.querySelector('form button').click(), true))(document.querySelector('input[name=code]'))`, code))
		}
		enter("0000-0000-0000-0000")
		b.becomes(10*time.Second, `document.querySelector('.note')?.textContent.includes('not valid')`)
		if scripts {
			for _, v := range b.violations(script) {
				t.Errorf("%s (%s): %v", v.ID, v.Help, v.Nodes)
			}
		}
		b.visit(address + "&__anteroom=invite." + codes[i])
		b.becomes(10*time.Second, `document.querySelector('input[name=code]')?.value == '`+codes[i]+`'`)
		b.becomes(10*time.Second, `(e => e && (e.click(), true))(document.querySelector('form button'))`)
		b.getsIn()
		if got := eval[string](b, "location.href"); got != address {
			t.Errorf("the visitor is at %s, was at %s", got, address)
		}
	}
	other := open(t)
	other.visit(o.url("/"))
	other.becomes(10*time.Second, `(e => e && (e.value = '`+codes[0]+`', document.querySelector('form button').click(), true))(document.querySelector('input[name=code]'))`)
	other.becomes(10*time.Second, `document.querySelector('.note')?.textContent.includes('already been used')`)

	d.goes("/rooms/127.0.0.1/checkout/invites")
	d.becomes(10*time.Second, `/members[\s\S]*\s2\s+2\s/.test(document.querySelector('main table')?.innerText ?? '')`)
	d.presses("Revoke members")
	d.presses("Revoke the codes")
	d.says("No invite codes")
}
