// Serves LISTEN by the worker that "edge init" wrote into the folder DIR, in workerd, the runtime of Cloudflare Workers, which miniflare
// starts. What the network of the CDN does is here: fetch goes to the zone's origin (APPLICATION), or with resolveOverride to Anteroom
// (ANTEROOM), and requests arrive with the visitor's address. NOW is the clock in seconds, if it is not the machine's.
import fs from 'node:fs'
import {Miniflare} from 'miniflare'

const {LISTEN, DIR, ANTEROOM, APPLICATION, NOW} = process.env
const [host, port] = LISTEN.split(':')
const cdn = `
import './clock.js'
import worker from './worker.js'
let to
globalThis.fetch = (input, options) => (options?.cf?.resolveOverride ? to.ANTEROOM : to.APPLICATION).fetch(input, options)
export default {
  fetch(request, env, ctx) {
    to = env
    const headers = new Headers(request.headers)
    for (const name of [...headers.keys()]) if (name.startsWith('cf-') || name.startsWith('mf-')) headers.delete(name)
    headers.set('X-Forwarded-For', '127.0.0.1')
    headers.set('X-Forwarded-Proto', 'http')
    return worker.fetch(new Request(request, {headers}), env, ctx)
  },
}`
const clock = NOW ? `Date.now = () => ${Number(NOW) * 1000}` : '' // before the worker is read, which remembers Date.now
const file = name => ({type: 'ESModule', path: name, contents: fs.readFileSync(`${DIR}/${name}`, 'utf8')})
const at = address => ({external: {address, http: {}}})
const mf = new Miniflare({host, port: Number(port), cf: false, compatibilityDate: '2026-07-01', modulesRoot: '.', modules: [{type: 'ESModule', path: 'cdn.js', contents: cdn}, {type: 'ESModule', path: 'clock.js', contents: clock}, file('worker.js'), file('pass.js')],
  serviceBindings: {ANTEROOM: at(ANTEROOM), APPLICATION: at(APPLICATION)}})
await mf.ready
