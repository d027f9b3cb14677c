// Passes of examples/edges/javascript/pass.js with a clock and a list of its own. It prints after each request whether it goes straight to
// the application, how often the list was fetched, and what was logged.
import {Passes} from '../../../examples/edges/javascript/pass.js'

const secret = 'x'.repeat(43), zone = 'shop.example.com', room = '0123456789abcdef0123456789abcdef'
let logged = []
for (const level of ['warn', 'info']) console[level] = () => logged.push(level)

let now = 1_800_000_000_000, list, fetched = 0
const passes = new Passes({anteroom: 'http://anteroom', zone, room, secrets: {k: secret}, revoked: true, now: () => now, fetch: async address => {
  fetched++
  if (address !== `http://anteroom/.well-known/anteroom/revoked?room=${room}` || !list) throw new Error('no list')
  return {ok: true, json: async () => list}
}})

const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), {name: 'HMAC', hash: 'SHA-256'}, false, ['sign'])
const pass = async () => {
  const iat = now / 1000 | 0, part = value => Buffer.from(value).toString('base64url')
  const text = part('{"alg":"HS256","typ":"JWT","kid":"k"}') + '.' + part(JSON.stringify({use: 'pass', iss: 'anteroom', aud: zone, room, sid: 'ann', iat, nbf: iat - 5, exp: iat + 30}))
  return text + '.' + Buffer.from(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text))).toString('base64url')
}

// asks sends a request after some time, and waits for what it leaves behind.
const asks = async (after, next) => {
  list = next
  now += after
  const cookie = `__anteroom_pass=${await pass()}`
  const straight = await passes.admits('/', name => name === 'cookie' ? cookie : undefined)
  await new Promise(resolve => setImmediate(resolve))
  console.log(straight, fetched, ...logged)
  logged = []
}

const ann = {revoked: ['ann'], complete: true}, nobody = {revoked: [], complete: true}
await asks(0, nobody)
await asks(3000, ann) // the first after a pause waits for the list
await asks(900, undefined) // no fetch yet
await asks(100, undefined) // what is known stays
await asks(1000, undefined)
await asks(1000, {revoked: [], complete: false}) // a site does not answer: likewise
await asks(1000, nobody) // fetched in the background
await asks(500, ann)
await asks(500, ann)
await asks(100, ann)
