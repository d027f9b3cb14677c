// For applications in Node: a handler in front of the application, for node:http, Express and Connect.
//
// Anteroom's origin must be a listener of the application without this handler; otherwise requests would go in circles.
import http from 'node:http'
import {Passes} from './pass.js'

/**
 * Returns middleware that lets requests with a good pass through to the application and sends all others to Anteroom. Put it
 * before everything else, above all before what reads bodies. Give upgrade to the server's event of that name.
 * @param {ConstructorParameters<typeof Passes>[0] & {host?: string, proxied?: boolean}} want what a pass must be for; host: one that Anteroom serves, if
 *   it is not the zone; proxied: a proxy in front sets X-Forwarded-Proto
 */
export function anteroom(want) {
  // Anteroom serves only hosts that it knows, and the address of its listener may be none of them.
  const passes = new Passes({fetch: fetchAs(want.host ?? want.zone), ...want})
  const handler = async (req, res, next) => {
    const own = await passes.admits(req.url, name => req.headers[name])
    if (!own) return toAnteroom(want, req, res)
    for (const name of Object.keys(req.headers)) if (Passes.forged(name)) delete req.headers[name]
    if (req.headers.cookie) req.headers.cookie = Passes.others(req.headers.cookie)
    hide(res)
    next()
  }
  handler.upgrade = (req, socket, head) => {
    const asked = ask(want, req)
    asked.on('upgrade', (answer, other, rest) => {
      socket.write(headText(answer))
      if (rest.length) socket.write(rest)
      if (head.length) other.write(head)
      socket.pipe(other).pipe(socket)
      other.on('error', () => socket.destroy())
      socket.on('error', () => other.destroy())
    })
    asked.on('response', answer => {
      socket.write(headText(answer))
      answer.pipe(socket)
    })
    asked.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n'))
    socket.on('error', () => asked.destroy())
    asked.end()
  }
  return handler
}

// fetchAs is fetch for another host than that of the address, which fetch cannot.
const fetchAs = host => (address, {signal}) => new Promise((resolve, reject) => {
  http.get(address, {headers: {Host: host}, signal}, async answer => {
    const parts = await answer.toArray().catch(reject)
    resolve({ok: answer.statusCode === 200, status: answer.statusCode, json: () => JSON.parse(Buffer.concat(parts))})
  }).on('error', reject)
})

// hide keeps the application's word to Anteroom from the visitor.
function hide(res) {
  const {writeHead} = res
  res.writeHead = function (status, ...args) {
    if (args.at(-1) && typeof args.at(-1) === 'object') {
      const fields = args.pop()
      if (Array.isArray(fields)) for (let i = 0; i < fields.length; i += 2) this.appendHeader(fields[i], fields[i + 1])
      else for (const [name, value] of Object.entries(fields)) this.setHeader(name, value)
    }
    this.removeHeader('Cf-Waiting-Room-Command')
    return writeHead.call(this, status, ...args)
  }
}

const pairs = function* (raw) {
  for (let i = 0; i < raw.length; i += 2) yield [raw[i], raw[i + 1]]
}

function ask({anteroom, proxied}, req) {
  const {hostname, port} = new URL(anteroom)
  const own = req.socket.encrypted ? 'https' : 'http'
  const fields = [...pairs(req.rawHeaders)].filter(([name]) => !/^x-forwarded-(for|proto)$/i.test(name)).flat()
  fields.push('X-Forwarded-For', [req.headers['x-forwarded-for'], req.socket.remoteAddress].filter(Boolean).join(', '))
  fields.push('X-Forwarded-Proto', proxied ? req.headers['x-forwarded-proto'] ?? own : own)
  return http.request({hostname, port: port || 80, method: req.method, path: req.url, headers: fields, setHost: false})
}

function toAnteroom(want, req, res) {
  const asked = ask(want, req)
  asked.on('response', answer => {
    for (const [name, value] of pairs(answer.rawHeaders)) if (!/^(connection|keep-alive)$/i.test(name)) res.appendHeader(name, value)
    res.writeHead(answer.statusCode, answer.statusMessage)
    answer.pipe(res)
    answer.on('error', () => res.destroy())
  })
  asked.on('error', () => {
    if (!res.headersSent) res.writeHead(502).end() // later errors cut the answer, if it is not whole yet
  })
  asked.on('close', () => req.resume()) // many clients read the answer only when their whole upload is taken
  res.on('close', () => asked.destroy())
  req.pipe(asked)
}

const headText = answer => `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n` + [...pairs(answer.rawHeaders)].map(([name, value]) => `${name}: ${value}\r\n`).join('') + '\r\n'
