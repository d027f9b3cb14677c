// Serves LISTEN as an edge in JavaScript: the middleware of examples/edges/javascript before an application, or the worker that
// "edge init" wrote into the folder DIR. The worker runs in Node with a double of what a CDN gives it: fetch goes to the zone's
// origin (APPLICATION), or with resolveOverride to Anteroom (ANTEROOM). NOW is the clock in seconds, if it is not the machine's.
import http from 'node:http'
import {Readable} from 'node:stream'
import {anteroom} from '../../../examples/edges/javascript/node.js'

const {KIND, LISTEN, DIR, ANTEROOM, APPLICATION, NOW, ZONE, ROOM} = process.env
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

const kinds = {
  async node() {
    const handler = anteroom({anteroom: `http://${ANTEROOM}`, zone: ZONE, room: ROOM, ends: ['/checkout/done']})
    return http.createServer((req, res) => handler(req, res, () => pass(req, res))).on('upgrade', handler.upgrade)
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
