// A Cloudflare Worker on the route shop.example.com/*: requests with a good pass go to the zone's origin, all others to Anteroom, whose
// address is a DNS record of the zone. Anteroom must trust the addresses of the CDN (trusted_proxies).
import {Passes} from './pass.js'

const through = {cf: {resolveOverride: 'anteroom.shop.example.com'}}
const passes = new Passes({
  anteroom: 'https://shop.example.com',
  zone: 'shop.example.com',
  room: '0123456789abcdef0123456789abcdef',
  issuer: 'anteroom',
  suffix: '',
  ends: ['/checkout/done'],
  fetch: (address, options) => fetch(address, {...options, ...through}),
})

export default {
  async fetch(request) {
    const {pathname, search} = new URL(request.url)
    const straight = await passes.admits(pathname + search, name => request.headers.get(name))
    const headers = new Headers(request.headers)
    for (const name of [...headers.keys()]) if (Passes.forged(name)) headers.delete(name)
    if (straight) headers.set('Cookie', Passes.others(headers.get('Cookie')))
    // The worker follows no redirect itself. The address stays as it is, so that Anteroom sees the host that the visitor asked for.
    const answer = await fetch(new Request(request, {headers, redirect: 'manual'}), straight ? {} : through)
    if (!straight || !answer.headers.has('Cf-Waiting-Room-Command')) return answer
    const own = new Response(answer.body, answer)
    own.headers.delete('Cf-Waiting-Room-Command')
    return own
  },
}
