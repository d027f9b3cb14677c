import { curl } from '../core/curl'
import { eventInTerraform, hcl, roomInTerraform, rulesInTerraform, zoneInTerraform } from '../pages/model/snippet'
import { zonesOf } from '../pages/model/zones'
import { check } from './check'

const least = { name: 'shop', host: 'a.example', total_active_users: 2, new_users_per_minute: 1 }

export const snippet = [
  check('a line of curl', [
    ['GET', () => curl('GET', '/a'), `curl -s '${location.origin}/a' \\\n  -H "Authorization: Bearer $TOKEN"`],
    ['DELETE', () => curl('DELETE', '/a').startsWith("curl -s -X DELETE '"), true],
    ['a quote, a dollar and a back quote do nothing', () => curl('PATCH', '/a', { d: "it's $HOME `id`" }).split('--json ')[1], `'{\n  "d": "it'\\''s $HOME \`id\`"\n}'`],
  ]),
  check('a value in HCL', [
    ['simple ones', () => [null, undefined, true, 3, [], {}].map((v) => hcl(v)), ['null', 'null', 'true', '3', '[]', '{}']],
    ['quotes and backslashes', () => hcl('a "b" \\ c'), '"a \\"b\\" \\\\ c"'],
    ['line breaks and tabs', () => hcl('a\r\n\tb'), '"a\\r\\n\\tb"'],
    ['a dollar alone', () => hcl('$5 100%'), '"$5 100%"'],
    ['no template is evaluated', () => hcl('${file("x")} %{if a}'), '"$${file(\\"x\\")} %%{if a}"'],
    ['a text of lines', () => hcl('<p>a</p>\n"b"\n'), '<<EOT\n<p>a</p>\n"b"\nEOT'],
    ['no template in a text of lines', () => hcl('${a}\n'), '<<EOT\n$${a}\nEOT'],
    ['a text that would end its heredoc', () => hcl('a\n EOT\nb\n'), '"a\\n EOT\\nb\\n"'],
    ['a list', () => hcl(['a', 'b']), '["a", "b"]'],
  ]),
  check('Terraform', [
    ['a room without what is usual', () => roomInTerraform('z1', { ...least, session_duration: 5, queueing_method: 'fifo' }), 'resource "cloudflare_waiting_room" "shop" {\n  zone_id              = "z1"\n  name                 = "shop"\n  host                 = "a.example"\n  total_active_users   = 2\n  new_users_per_minute = 1\n}'],
    ['what the provider does not know is named', () => roomInTerraform('z1', { ...least, refresh: '20s' }).split('\n')[0], '# Not known to the provider, and kept as they are: refresh'],
    ['a zone that is new', () => zoneInTerraform('a.example').text, 'variable "account" {\n  type = string\n}\n\nresource "cloudflare_zone" "a_example" {\n  account = { id = var.account }\n  name    = "a.example"\n}'],
    ['a room in a zone that is new', () => roomInTerraform(zoneInTerraform('a.example').id, least).split('\n')[1], '  zone_id              = cloudflare_zone.a_example.id'],
    ['a name that begins with a digit', () => eventInTerraform('z', 'r', { name: '1st"sale' }).split('\n')[0], 'resource "cloudflare_waiting_room_event" "_1st_sale" {'],
    ['an event that inherits', () => eventInTerraform('z', 'r', { name: 'a', session_duration: null, suspended: false }).includes('session_duration'), false],
    ['a rule', () => rulesInTerraform('z', 'r', 'shop', [{ action: 'bypass_waiting_room', expression: 'http.host eq "a"', enabled: false }]).includes('expression = "http.host eq \\"a\\""\n'), true],
  ]),
  check('the zones of a host', [
    ['none', () => zonesOf(''), []],
    ['every host', () => zonesOf('*'), ['*']],
    ['an address', () => zonesOf('192.0.2.1'), ['192.0.2.1']],
    ['two labels', () => zonesOf('Example.com '), ['example.com']],
    ['three', () => zonesOf('shop.example.com'), ['example.com', 'shop.example.com']],
    ['below a country', () => zonesOf('shop.example.co.uk')[0], 'example.co.uk'],
    ['every name below', () => zonesOf('*.example.com'), ['example.com']],
  ]),
]
