// For applications in Node: a handler in front of the application, for node:http, Express and Connect.
//
// Anteroom's origin must be a listener of the application without this handler; otherwise requests would go in circles.
import http from 'node:http'
import {Passes} from './pass.js'

const ticketLetters = /^[\w-]{1,256}$/
const reportEvery = 3000, maxReports = 10_000, maxTouches = 1000, maxTouchAge = 10_000

/** Reports the newest request of each session that was admitted, after a while and in batches. */
class Reports {
  #seen = new Map() // by session, as its pass names it: {ticket, at}; the oldest first
  #timer = null
  #failed = false

  constructor({reports, token, room, suffix = '', cookieName = '__cfwaitingroom'}) {
    Object.assign(this, {url: new URL('/anteroom/v1/touch', reports), token, room, cookie: suffix ? `${cookieName}_${suffix}` : cookieName})
  }

  saw(sid, cookies) {
    const ticket = cookies.split(';').map(pair => pair.trim()).find(pair => pair.startsWith(this.cookie + '='))?.slice(this.cookie.length + 1)
    if (!ticket || !ticketLetters.test(ticket)) return
    this.#note(sid, {ticket, at: Date.now()})
    this.#timer ??= setTimeout(() => this.#report(), reportEvery).unref()
  }

  #note(sid, one) {
    if (this.#seen.size >= maxReports && !this.#seen.has(sid)) this.#seen.delete(this.#seen.keys().next().value)
    this.#seen.set(sid, one)
  }

  // What nobody took is reported again, until it counts no more.
  async #report() {
    const all = [...this.#seen]
    this.#seen = new Map()
    try {
      while (all.length) {
        await this.#tell(all.slice(0, maxTouches).map(([, one]) => one))
        all.splice(0, maxTouches)
      }
      if (this.#failed) console.info('anteroom: reports are taken again')
      this.#failed = false
    } catch (err) {
      if (!this.#failed) console.warn('anteroom: nobody takes reports; visitors who come only with passes may have to queue again:', err.message)
      this.#failed = true
      for (const [sid, one] of all) if (Date.now() - one.at < maxTouchAge && !this.#seen.has(sid) && this.#seen.size < maxReports) this.#seen.set(sid, one)
    }
    this.#timer = this.#seen.size ? setTimeout(() => this.#report(), reportEvery).unref() : null
  }

  async #tell(some) {
    const touches = some.map(({ticket, at}) => ({ticket, seconds_ago: Math.max(0, Math.floor((Date.now() - at) / 1000))}))
    const answer = await fetch(this.url, {method: 'POST', redirect: 'error', signal: AbortSignal.timeout(reportEvery),
      headers: {'Authorization': `Bearer ${this.token}`, 'Content-Type': 'application/json'}, body: JSON.stringify({room: this.room, touches})})
    await answer.arrayBuffer()
    if (!answer.ok) throw new Error(`status ${answer.status}`)
  }
}

/**
 * Returns middleware that lets requests with a good pass through to the application and sends all others to Anteroom. Put it
 * before everything else, above all before what reads bodies. Give upgrade to the server's event of that name.
 * @param {ConstructorParameters<typeof Passes>[0] & {host?: string, proxied?: boolean, reports?: string, token?: string, cookieName?: string}} want what a
 *   pass must be for; host: one that Anteroom serves, if it is not the zone; proxied: a proxy in front sets X-Forwarded-Proto; reports, for a
 *   room with pass_reported: the address of Anteroom's API, with a token that may read the room; cookieName: cookie_name of Anteroom's configuration
 */
export function anteroom(want) {
  // Anteroom serves only hosts that it knows, and the address of its listener may be none of them.
  const passes = new Passes({fetch: fetchAs(want.host ?? want.zone), ...want})
  const reports = want.reports && new Reports(want)
  const handler = async (req, res, next) => {
    const sid = await passes.session(req.url, name => req.headers[name])
    if (!sid) return toAnteroom(want, req, res)
    if (reports) reports.saw(sid, req.headers.cookie)
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
