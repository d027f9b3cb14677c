package e2e

import (
	"fmt"
	"net/http"
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
		address, fragment := o.url("/product/dawn-mug?color=red"), "#reviews"
		if !scripts {
			fragment = ""
		}
		b.visit(address + fragment)
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
		b.visit(address + "&__anteroom=invite." + codes[i] + fragment)
		b.becomes(10*time.Second, `document.querySelector('input[name=code]')?.value == '`+codes[i]+`'`)
		b.becomes(10*time.Second, `(e => e && (e.click(), true))(document.querySelector('form button'))`)
		b.getsIn()
		if got := eval[string](b, "location.href"); got != address+fragment {
			t.Errorf("the visitor is at %s, was at %s", got, address+fragment)
		}
	}
	other := open(t)
	other.visit(o.url("/"))
	other.becomes(10*time.Second, `(e => e && (e.value = '`+codes[0]+`', document.querySelector('form button').click(), true))(document.querySelector('input[name=code]'))`)
	other.becomes(10*time.Second, `document.querySelector('.note')?.textContent.includes('already been used')`)

	d.goes("/rooms/127.0.0.1/checkout/invites")
	d.becomes(10*time.Second, `/members[\s\S]*\s2\s+2\s/.test(document.querySelector('main table')?.innerText ?? '')`)
	d.presses("Revoke a code")
	d.fill("code", "K7QM")
	d.presses("Revoke")
	d.says("16 letters and digits")
	d.fill("code", codes[1])
	d.presses("Revoke")
	d.says("Code revoked")
	d.presses("Revoke members")
	d.presses("Revoke the codes")
	d.says("No invite codes")
}

// Codes for an event that is months away last until it ends, without the operator having to say so; shorter lives are not even offered.
func TestInviteCodesFromTheDashboardLastUntilTheirEventEnds(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	start := time.Now().AddDate(0, 0, 100).UTC().Truncate(time.Hour)
	end := start.Add(2 * time.Hour).Format(time.RFC3339)
	o.good(http.MethodPost, o.under("/"+id+"/events"), fields{"name": "presale", "invite_only": true, "event_start_time": start.Format(time.RFC3339), "event_end_time": end}.String(), nil)
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "invites"))
	d.presses("New codes")
	lives := `Array.from(` + field("expires_on") + `.options, o => o.text).join('|')`
	if got, want := eval[string](d.tab, lives), "30 days|a day|a week|90 days|366 days"; got != want {
		t.Errorf("codes for any time last %s, want %s", got, want)
	}
	eval[bool](d.tab, `(s => { s.selectedIndex = 1; s.dispatchEvent(new Event('change', {bubbles: true})); return true })(`+field("event")+`)`)
	d.becomes(10*time.Second, lives+`.includes('the event')`)
	if got, want := eval[string](d.tab, lives), "30 days, or the end of the event if that is later|366 days"; got != want {
		t.Errorf("codes for the event last %s, want %s", got, want)
	}
	d.presses("Make codes")
	d.becomes(10*time.Second, `(`+dialogText+`).includes('These codes are shown only once')`)
	var made []struct {
		ExpiresOn string `json:"expires_on"`
	}
	o.good(http.MethodGet, "/anteroom/v1/zones/"+o.zone+"/rooms/"+id+"/invites", "", &made)
	if len(made) != 1 || made[0].ExpiresOn != end {
		t.Errorf("made %v, want codes until the end of the event, %s", made, end)
	}
}

// At a proxy that asks, a visitor enters a code as at a gateway: the form reaches Anteroom with its body.
func TestInviteCodesAtAnEdge(t *testing.T) {
	for _, e := range askingEdges {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			app := newGuarded(t)
			at := addresses{listen: freeAddress(t), verdicts: freeAddress(t), application: strings.TrimPrefix(app.URL, "http://")}
			g := newGate(t, strings.Replace(twoSeats, "    total_active_users: 2\n", "    total_active_users: 2\n    invite_only: true\n", 1), "trusted_proxies: [127.0.0.1]\nforward_auth: {listen: \""+at.verdicts+"\", peers: [127.0.0.1]}")
			g.origin.url, g.environment = app.URL, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
			g.configure(g.rooms)
			g.start()
			t.Cleanup(g.end)
			at.anteroom = g.host
			e.start(t, writesEdge(t, g, e.name, e.host, at), at)
			code := strings.TrimSpace(strings.TrimPrefix(g.command("room", "invite", "create", "shop", "--count", "1", "--api", g.operators(), "--token", operatorToken), "code\n"))
			g.host = at.listen

			v := newVisitor(t, g)
			eventually(t, 15*time.Second, func() string {
				if a, err := v.try(http.MethodGet, "/buy", ""); err != nil || a.admitted() || !strings.Contains(a.text(t), "By invitation only") || a.ticket() == "" {
					return fmt.Sprintf("no page that asks for a code through %s: %v", e.name, err)
				}
				return ""
			})
			enter := func(code string) answer {
				return v.do(http.MethodPost, "/buy?__anteroom=invite", "code="+code, "Content-Type", "application/x-www-form-urlencoded", "Origin", "http://"+at.listen, "Sec-Fetch-Site", "same-origin")
			}
			if a := enter("0000-0000-0000-0000"); !strings.Contains(a.text(t), "not valid") {
				t.Errorf("a wrong code: %s", a.Status)
			}
			if a := enter(code); a.StatusCode != http.StatusSeeOther || a.ticket() == "" {
				t.Errorf("a good code: %s %s", a.Status, a.body)
			}
			if a := v.get("/buy"); !a.admitted() {
				t.Errorf("the invited visitor: %s", a.Status)
			}
		})
	}
}
