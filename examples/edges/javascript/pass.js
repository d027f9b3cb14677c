// Verifies passes of Anteroom with Web Cryptography: in Node, Cloudflare Workers, Deno, Bun, and in middleware of Next.js.

const decode = text => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0))
const encode = text => btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

// The encoded header of a key's passes. Passes with another header are refused unread, so that no pass chooses its algorithm.
const headOf = (alg, kid) => encode(`{"alg":"${alg}","typ":"JWT","kid":"${kid}"}`)

const ES256 = {name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256'}
const HS256 = {name: 'HMAC', hash: 'SHA-256'}

export class Passes {
  #keys = new Map() // by encoded header
  #asked = -Infinity
  #revoked = {sids: new Set(), at: -Infinity, asked: -Infinity, busy: null, failed: false}

  /**
   * @param {object} want
   * @param {string} want.anteroom address of Anteroom, like http://127.0.0.1:8080, for its public keys
   * @param {string} want.zone the room's zone
   * @param {string} want.room the room's ID, 32 hexadecimal digits
   * @param {string} [want.issuer] proof.issuer of the configuration
   * @param {string} [want.suffix] the room's cookie_suffix
   * @param {string[]} [want.ends] paths at which the application ends sessions, with everything below them
   * @param {Object<string, string>} [want.secrets] for a room with pass_edge: what "anteroom key pass --edge" shows, by KID
   * @param {boolean} [want.revoked] refuse passes of revoked sessions, whose list is fetched each second while requests come; not in
   *   Workers, where one request cannot wait for what another one fetches
   * @param {typeof fetch} [want.fetch] how the keys and the list are fetched
   * @param {() => number} [want.now] the time in milliseconds
   */
  constructor({anteroom, zone, room, issuer = 'anteroom', suffix = '', ends = [], secrets, revoked = false, fetch = (...a) => globalThis.fetch(...a), now = Date.now}) {
    if (!zone || !room) throw new Error('name the zone and the room: without them, passes of others would be accepted')
    Object.assign(this, {anteroom, zone, room, issuer, ends, secrets, revoked, fetch, now})
    this.cookie = suffix ? `__anteroom_pass_${suffix}` : '__anteroom_pass'
  }

  /**
   * Reports whether a request goes straight to the application. Every doubt leads to Anteroom, which admits active users.
   * @param {string} target path and query
   * @param {(name: string) => string | null | undefined} header the value of a request header
   */
  async admits(target, header) {
    return await this.session(target, header) !== null
  }

  /** Returns the session of a request that goes straight to the application, and null of any other. */
  async session(target, header) {
    const [path, query = ''] = target.split('?')
    if (header('upgrade') || path.startsWith('/.well-known/anteroom/') || new URLSearchParams(query).has('__anteroom') ||
      this.ends.some(end => path === end || path.startsWith(end + '/'))) return null
    const claims = await this.verify(header('cookie') ?? '')
    // Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
    const straight = claims !== null && !(header('sec-fetch-mode') === 'navigate' && this.now() / 1000 >= (claims.iat + claims.exp) / 2) &&
      !(this.revoked && await this.#isRevoked(claims.sid))
    return straight ? claims.sid : null
  }

  /** Returns what the pass in a Cookie header says, or null if there is no good one. */
  async verify(cookies) {
    const found = cookies.split(';').map(pair => pair.trim()).filter(pair => pair.startsWith(this.cookie + '='))
    const pass = found[0]?.slice(this.cookie.length + 1) ?? ''
    const parts = pass.split('.')
    if (found.length !== 1 || pass.length > 1024 || parts.length !== 3) return null
    try {
      const key = await this.#key(parts[0])
      if (!key || !await crypto.subtle.verify(key.how, key.key, decode(parts[2]), new TextEncoder().encode(`${parts[0]}.${parts[1]}`))) return null
      const claims = JSON.parse(new TextDecoder().decode(decode(parts[1])))
      const now = Math.floor(this.now() / 1000)
      const good = claims.use === 'pass' && claims.iss === this.issuer && claims.aud === this.zone && claims.room === this.room &&
        claims.nbf <= now && now < claims.exp && typeof claims.sid === 'string' && claims.sid !== ''
      return good ? claims : null
    } catch {
      return null
    }
  }

  /** Headers that visitors must not send. */
  static forged(name) {
    return /^x[-_.]anteroom[-_.]/i.test(name)
  }

  /** Returns a Cookie header without passes and tickets, for which the application has no use. */
  static others(cookies) {
    return cookies.split(';').filter(pair => !/^\s*__(anteroom_pass|cfwaitingroom)/.test(pair)).join(';').trim()
  }

  // Keys are fetched every five minutes, and when a pass names another one, at most every ten seconds. While one request fetches them,
  // others go on with those that are there: at worst to Anteroom.
  async #key(head) {
    const age = this.now() - this.#asked
    if (age >= 300_000 || age >= 10_000 && !this.#keys.has(head)) {
      this.#asked = this.now()
      this.#keys = await this.#load().catch(() => this.#keys)
    }
    return this.#keys.get(head)
  }

  // The list is fetched in the background; the first requests after a pause wait for it, unless Anteroom did not answer the last time.
  async #isRevoked(sid) {
    const list = this.#revoked, now = this.now()
    if (!list.busy && now - list.asked >= 1000) {
      list.asked = now
      list.busy = this.#pull(list, now).finally(() => list.busy = null)
    }
    if (list.busy && !list.failed && now - list.at > 2000) await list.busy
    return list.sids.has(sid)
  }

  async #pull(list, now) {
    try {
      const answer = await this.fetch(`${this.anteroom}/.well-known/anteroom/revoked?room=${this.room}`, {signal: AbortSignal.timeout(1000)})
      if (!answer.ok) throw new Error(`status ${answer.status}`)
      const {revoked, complete} = await answer.json()
      // What a site said that does not answer now still holds: a session that was revoked never comes back.
      list.sids = new Set(complete || list.sids.size >= 100_000 ? revoked : [...list.sids, ...revoked])
      if (list.failed) console.info('anteroom: the list of revoked sessions is fetched again')
      Object.assign(list, {at: now, failed: false})
    } catch (err) {
      if (!list.failed) console.warn('anteroom: the list of revoked sessions cannot be fetched; passes of sessions revoked from now on are valid to their end:', err.message)
      list.failed = true
    }
  }

  async #load() {
    const keys = new Map()
    for (const [kid, secret] of Object.entries(this.secrets ?? {})) {
      keys.set(headOf('HS256', kid), {how: HS256, key: await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), HS256, false, ['verify'])})
    }
    if (this.secrets) return keys
    const answer = await this.fetch(`${this.anteroom}/.well-known/anteroom/jwks.json`, {signal: AbortSignal.timeout(5000)})
    if (!answer.ok) throw new Error(`the public keys of passes: status ${answer.status}`)
    for (const {kty, crv, x, y, kid, alg} of (await answer.json()).keys) {
      if (kty !== 'EC' || crv !== 'P-256' || alg !== 'ES256') continue
      keys.set(headOf('ES256', kid), {how: ES256, key: await crypto.subtle.importKey('jwk', {kty, crv, x, y}, ES256, false, ['verify'])})
    }
    return keys
  }
}
