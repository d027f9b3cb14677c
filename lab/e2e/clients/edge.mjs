// Serves LISTEN as an edge in JavaScript: the middleware of examples/edges/javascript before an application, or the worker or the
// function that "edge init" wrote into the folder DIR. The worker runs in Node with a double of what a CDN gives it: fetch goes to the
// zone's origin (APPLICATION), or with resolveOverride to Anteroom (ANTEROOM). The function gets events as CloudFront documents them,
// and nothing of Node but Buffer and crypto's hashes. NOW is the clock in seconds, if it is not the machine's. With REVOKED, the middleware
// fetches the list of revoked sessions, and reports whom it lets in to REPORTS with TOKEN.
import crypto from 'node:crypto'
import {readFileSync} from 'node:fs'
import http from 'node:http'
import vm from 'node:vm'
import {Readable} from 'node:stream'
import {anteroom} from '../../../examples/edges/javascript/node.js'

const {KIND, LISTEN, DIR, ANTEROOM, APPLICATION, NOW, ZONE, ROOM, REVOKED, REPORTS, TOKEN} = process.env
if (NOW) Date.now = () => Number(NOW) * 1000
const at = address => ({hostname: address.split(':')[0], port: address.split(':')[1]})

// pass sends a request on to the application, with the headers that the handler before it left.
const pass = (req, res) => {
  const {connection, ...headers} = req.headers
  const asked = http.request({...at(APPLICATION), method: req.method, path: req.url, headers}, answer => {
    res.writeHead(answer.statusCode, answer.headers)
    res.flushHeaders()
    answer.pipe(res)
  })
  asked.on('error', () => res.destroy())
  req.pipe(asked)
}

const inFront = () => anteroom({anteroom: `http://${ANTEROOM}`, zone: ZONE, room: ROOM, ends: ['/checkout/done'], revoked: Boolean(REVOKED), reports: REPORTS, token: TOKEN})

const kinds = {
  async node() {
    const handler = inFront()
    return http.createServer((req, res) => handler(req, res, () => pass(req, res))).on('upgrade', handler.upgrade)
  },
  async express() {
    const {default: express} = await import('express')
    const handler = inFront()
    return http.createServer(express().use(handler).use(pass)).on('upgrade', handler.upgrade)
  },
  async fastify() { // as docs/edges.md says
    const {default: fastify} = await import('fastify')
    const handler = inFront(), app = fastify()
    app.addHook('onRequest', async (request, reply) => {
      let own = false
      await handler(request.raw, reply.raw, () => own = true)
      if (!own) reply.hijack()
    })
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (request, payload, done) => done(null)) // the handler reads the body itself
    app.all('/*', (request, reply) => {
      reply.hijack()
      pass(request.raw, reply.raw)
    })
    app.server.on('upgrade', handler.upgrade)
    await app.ready()
    return app.server
  },
  async cloudfront() {
    const source = readFileSync(`${DIR}/function.js`, 'utf8')
    if (source.length > 10_000) throw new Error(`the function has ${source.length} bytes, and CloudFront takes 10 kB`)
    let origin
    const {createHash, createHmac} = crypto
    const context = vm.createContext({Buffer, cf: {updateRequestOrigin: to => origin = to}, require: name => {
      if (name !== 'crypto') throw new Error(`there is no module ${name}`)
      return {createHash, createHmac}
    }})
    vm.runInContext(`${NOW ? `Date.now = () => ${NOW} * 1000` : ''};${source.replace("import cf from 'cloudfront'", '')}`, context)
    const valued = pairs => {
      const all = {}
      for (const [name, value] of pairs) {
        const before = all[name]
        all[name] = before ? {...before, multiValue: [...before.multiValue ?? [{value: before.value}], {value}]} : {value}
      }
      return all
    }
    // decided runs the function, and returns where a request goes and what it carries there.
    const decided = req => {
      const [uri, query = ''] = req.url.split('?')
      const {cookie = '', ...headers} = req.headers
      const cookies = cookie.split(';').map(pair => pair.trim()).filter(Boolean).map(pair => [pair.split('=')[0], pair.slice(pair.indexOf('=') + 1)])
      const event = {version: '1.0', context: {eventType: 'viewer-request'}, viewer: {ip: '127.0.0.1'},
        request: {method: req.method, uri, querystring: valued(new URLSearchParams(query)), headers: valued(Object.entries(headers)), cookies: valued(cookies)}}
      origin = undefined
      const request = context.handler(event)
      const kept = Object.entries(request.cookies).flatMap(([name, {value, multiValue}]) => (multiValue ?? [{value}]).map(({value}) => `${name}=${value}`))
      return {to: origin ? ANTEROOM : APPLICATION, headers: {...Object.fromEntries(Object.entries(request.headers).map(([name, {value}]) => [name, value])),
        ...(kept.length ? {cookie: kept.join('; ')} : {}), 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http'}}
    }
    return http.createServer((req, res) => {
      const {to, headers: {connection, ...headers}} = decided(req)
      const asked = http.request({...at(to), method: req.method, path: req.url, headers}, answer => {
        delete answer.headers['cf-waiting-room-command'] // by a policy
        delete answer.headers.connection // of this hop; a server in Node that closes with unread data resets the connection
        answer.on('error', () => res.destroy())
        res.writeHead(answer.statusCode, answer.headers)
        res.flushHeaders()
        answer.pipe(res)
      })
      asked.on('error', () => res.headersSent || res.writeHead(502).end())
      asked.on('close', () => req.resume())
      req.pipe(asked)
    }).on('upgrade', (req, socket, head) => {
      if (decided(req).to === ANTEROOM) return anteroom({anteroom: `http://${ANTEROOM}`, zone: 'x', room: 'x'}).upgrade(req, socket, head)
      socket.destroy()
    })
  },
  async worker() {
    globalThis.fetch = async (input, options = {}) => {
      const request = new Request(input, options)
      const to = options.cf?.resolveOverride ? ANTEROOM : APPLICATION
      if (request.headers.get('upgrade')) throw {to}
      const {host, pathname, search} = new URL(request.url)
      const answer = await new Promise((resolve, reject) => {
        const headers = {...Object.fromEntries([...request.headers].filter(([name]) => name !== 'connection')), host}
        const asked = http.request({...at(to), method: request.method, path: pathname + search, headers}, resolve)
        asked.on('error', reject)
        request.body ? Readable.fromWeb(request.body).pipe(asked) : asked.end()
      })
      const fields = new Headers()
      for (let i = 0; i < answer.rawHeaders.length; i += 2) fields.append(answer.rawHeaders[i], answer.rawHeaders[i + 1])
      return new Response([204, 304].includes(answer.statusCode) || request.method === 'HEAD' ? null : Readable.toWeb(answer), {status: answer.statusCode, headers: fields})
    }
    const {default: worker} = await import(`${DIR}/worker.js`)
    const arrives = req => new Request(`http://${LISTEN}${req.url}`, {method: req.method, headers: [...Object.entries(req.headers), ['X-Forwarded-For', '127.0.0.1'], ['X-Forwarded-Proto', 'http']],
      ...(req.method === 'GET' || req.method === 'HEAD' ? {} : {body: Readable.toWeb(req), duplex: 'half'})})
    return http.createServer(async (req, res) => {
      try {
        const answer = await worker.fetch(arrives(req))
        for (const [name, value] of answer.headers) if (name !== 'connection') res.appendHeader(name, value)
        res.writeHead(answer.status)
        res.flushHeaders()
        answer.body ? Readable.fromWeb(answer.body).on('error', () => res.destroy()).pipe(res) : res.end()
      } catch (err) {
        console.error(err)
        res.headersSent ? res.destroy() : res.writeHead(502).end()
      }
    }).on('upgrade', async (req, socket, head) => {
      const {to} = await worker.fetch(arrives(req)).catch(where => where)
      if (to === ANTEROOM) return anteroom({anteroom: `http://${to}`, zone: 'x', room: 'x'}).upgrade(req, socket, head)
      socket.destroy()
    })
  },
}

const server = await kinds[KIND]()
server.listen({host: at(LISTEN).hostname, port: at(LISTEN).port})
