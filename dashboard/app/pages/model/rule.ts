// Rules as rows of a form. The form knows a part of the language: conditions joined by "and",
// these groups joined by "or". What else there is stays text.

export type ValueKind = 'string' | 'address' | 'number' | 'bool' | 'map'

export interface RuleField {
  name: string
  label: string
  kind: ValueKind
  sample: string
}

export const ruleFields: readonly RuleField[] = [
  { name: 'http.request.uri.path', label: 'Path', kind: 'string', sample: '/images/' },
  { name: 'http.request.uri.path.extension', label: 'File extension', kind: 'string', sample: 'css' },
  { name: 'http.request.uri.query', label: 'Query', kind: 'string', sample: 'key=a1' },
  { name: 'http.request.uri.args', label: 'Query argument', kind: 'map', sample: 'a1' },
  { name: 'http.request.full_uri', label: 'Whole address', kind: 'string', sample: 'https://shop.example.com/health' },
  { name: 'http.host', label: 'Host', kind: 'string', sample: 'shop.example.com' },
  { name: 'http.request.method', label: 'Method', kind: 'string', sample: 'OPTIONS' },
  { name: 'ip.src', label: 'Address of the visitor', kind: 'address', sample: '192.0.2.0/24' },
  { name: 'ip.src.country', label: 'Country', kind: 'string', sample: 'DE' },
  { name: 'ip.src.continent', label: 'Continent', kind: 'string', sample: 'EU' },
  { name: 'ip.src.asnum', label: 'Network (AS number)', kind: 'number', sample: '64496' },
  { name: 'http.user_agent', label: 'User agent', kind: 'string', sample: 'Monitor/' },
  { name: 'http.referer', label: 'Referer', kind: 'string', sample: 'https://example.com/' },
  { name: 'http.request.headers', label: 'Header', kind: 'map', sample: 'application/json' },
  { name: 'http.request.cookies', label: 'Cookie', kind: 'map', sample: '1' },
  { name: 'cf.client.bot', label: 'Verified crawler', kind: 'bool', sample: '' },
  { name: 'ssl', label: 'Encrypted', kind: 'bool', sample: '' },
]

export const operators: Record<ValueKind, readonly { op: string; label: string }[]> = {
  string: [
    { op: 'eq', label: 'is' }, { op: 'ne', label: 'is not' }, { op: 'contains', label: 'contains' }, { op: 'not contains', label: 'does not contain' }, { op: 'starts_with', label: 'starts with' },
    { op: 'not starts_with', label: 'does not start with' }, { op: 'ends_with', label: 'ends with' }, { op: 'in', label: 'is one of' }, { op: 'not in', label: 'is none of' }, { op: 'wildcard', label: 'is like (with *)' }, { op: 'matches', label: 'matches (regular expression)' },
  ],
  address: [{ op: 'in', label: 'is in' }, { op: 'not in', label: 'is not in' }, { op: 'eq', label: 'is' }],
  number: [{ op: 'eq', label: 'is' }, { op: 'ne', label: 'is not' }, { op: 'in', label: 'is one of' }, { op: 'ge', label: 'is at least' }, { op: 'le', label: 'is at most' }],
  bool: [{ op: 'is', label: 'yes' }, { op: 'is not', label: 'no' }],
  map: [{ op: 'eq', label: 'is' }, { op: 'contains', label: 'contains' }, { op: 'in', label: 'is one of' }, { op: 'exists', label: 'is there' }],
}

export interface Condition {
  field: string
  key: string // of a map
  op: string
  value: string // values of a set are between spaces or commas; $name is a list
}

export type Form = Condition[][] // groups joined by "or" of conditions joined by "and"

export const kindOf = (field: string): ValueKind => ruleFields.find((f) => f.name === field)?.kind ?? 'string'

const literal = (s: string) => `"${s.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`
const pattern = (s: string) => `"${s.replace(/"/g, '\\"')}"` // a backslash belongs to the regular expression
const listed = (s: string) => s.split(/[\s,]+/).filter(Boolean)

function set(value: string, quote: boolean): string {
  const v = value.trim()
  if (/^\$[a-z0-9_]+$/.test(v)) return v
  return `{${listed(v).map((x) => (quote ? literal(x) : x)).join(' ')}}`
}

function one(c: Condition): string {
  const kind = kindOf(c.field)
  if (kind === 'bool') return c.op === 'is not' ? `not ${c.field}` : c.field
  if (kind === 'map') {
    const of = `${c.field}[${literal(c.key)}]`
    if (c.op === 'exists') return `len(${of}) >= 0`
    return `any(${of}[*] ${c.op} ${c.op === 'in' ? set(c.value, true) : literal(c.value)})`
  }
  if (c.op.startsWith('not ')) return `not ${one({ ...c, op: c.op.slice(4) })}`
  const plain = kind === 'address' || kind === 'number'
  switch (c.op) {
    case 'in': return `${c.field} in ${set(c.value, !plain)}`
    case 'starts_with': case 'ends_with': return `${c.op}(${c.field}, ${literal(c.value)})`
    case 'matches': return `${c.field} matches ${pattern(c.value)}`
    default: return `${c.field} ${c.op} ${plain ? c.value.trim() : literal(c.value)}`
  }
}

/** The expression of a form. */
export function expressionOf(form: Form): string {
  const some = form.filter((g) => g.length)
  return some.map((g) => (g.length > 1 && some.length > 1 ? `(${g.map(one).join(' and ')})` : g.map(one).join(' and '))).join(' or ')
}

const token = /\s*(?:(\$[a-z0-9_]+)|(r?"(?:[^"\\]|\\[^])*")|([A-Za-z0-9_.:\/-]+)|(>=|<=|==|!=|&&|\|\||\[\*\]|[~()\[\]{},!<>]))/y

function tokens(text: string): string[] | null {
  const out: string[] = []
  token.lastIndex = 0
  const end = text.trimEnd().length
  while (token.lastIndex < end) {
    const m = token.exec(text)
    if (!m) return null
    out.push(m[1] ?? m[2] ?? m[3] ?? m[4])
  }
  return out
}

const words: Record<string, string> = { '==': 'eq', '!=': 'ne', '>=': 'ge', '<=': 'le', '~': 'matches', '&&': 'and', '||': 'or', '!': 'not' }

/** The form of an expression; null when it says what the form cannot. */
export function formOf(text: string): Form | null {
  const all = tokens(text)
  if (!all) return null
  let at = 0
  const peek = () => words[all[at]] ?? all[at]
  const next = () => { const t = peek(); at++; return t; }
  const want = (t: string) => { if (next() !== t) throw 0; }
  const str = (regex = false) => {
    const t = all[at++]
    if (t?.startsWith('r"') && regex && !t.includes('\\"')) return t.slice(2, -1)
    if (!t || t[0] !== '"') throw 0
    const inner = t.slice(1, -1)
    if (!regex && inner.replace(/\\["\\]/g, '').includes('\\')) throw 0
    return regex ? inner.replace(/\\"/g, '"') : inner.replace(/\\(["\\])/g, '$1')
  }
  const values = (quote: boolean) => {
    if (all[at]?.[0] === '$') return all[at++]
    want('{')
    const out: string[] = []
    while (peek() !== '}') {
      if (at >= all.length) throw 0
      const v = quote ? str() : all[at++]
      if (/[\s,]/.test(v) || v === '') throw 0
      out.push(v)
    }
    at++
    return out.join(' ')
  }
  const key = () => { want('['); const k = str(); want(']'); return k; }
  const condition = (): Condition => {
    const negated = peek() === 'not'
    if (negated) at++
    const name = next()
    const not = negated ? 'not ' : ''
    if (name === 'starts_with' || name === 'ends_with') {
      want('('); const field = next(); want(','); const value = str(); want(')')
      return checked({ field, key: '', op: not + name, value })
    }
    if (name === 'any' || name === 'len') {
      if (negated) throw 0
      want('(')
      const field = next(), k = key()
      if (kindOf(field) !== 'map') throw 0
      if (name === 'len') { want(')'); want('ge'); want('0'); return { field, key: k, op: 'exists', value: '' }; }
      want('[*]')
      const op = next()
      const value = op === 'in' ? values(true) : str()
      want(')')
      return checked({ field, key: k, op, value })
    }
    const kind = kindOf(name)
    if (!ruleFields.some((f) => f.name === name) || kind === 'map') throw 0
    if (kind === 'bool') return { field: name, key: '', op: negated ? 'is not' : 'is', value: '' }
    const op = next()
    const value = op === 'in' ? values(kind === 'string') : kind === 'string' ? str(op === 'matches') : all[at++]
    if (value === undefined) throw 0
    return checked({ field: name, key: '', op: not + op, value })
  }
  const group = (): Condition[] => {
    const out = [condition()]
    while (peek() === 'and') { at++; out.push(condition()); }
    return out
  }
  try {
    const form: Form = []
    for (;;) {
      if (peek() === '(') { at++; form.push(group()); want(')'); }
      else form.push(group())
      if (at >= all.length) return form
      want('or')
    }
  } catch {
    return null
  }
}

function checked(c: Condition): Condition {
  if (!operators[kindOf(c.field)].some((o) => o.op === c.op)) throw 0
  return c
}

/** Why a rule lets more pass than may be meant. The API says whether it is valid; here is only what a colleague would ask. */
export function warnings(text: string): string[] {
  const out = new Set<string>()
  const form = formOf(text)
  const wide = 'Nearly every request matches: almost no visitor would wait.'
  if (form) {
    for (const g of form) {
      if (g.length && g.every(matchesMost)) out.add(wide)
      else if (g.length && g.every((c) => matchesMost(c) || anybodySends(c))) {
        out.add('Anyone can send this header, cookie or argument and bypass the room. Treat the value as a secret, or add an address.')
      }
      for (const c of g) if (c.field === 'ip.src') for (const net of listed(c.value)) if (wideNetwork(net)) out.add(`${net} is a very large network.`)
    }
  }
  if (/http\.x_forwarded_for/.test(text)) out.add('Visitors can write into X-Forwarded-For; ip.src is the address after trusted proxies.')
  if (/^\s*(not\b|!)[^()]*$/.test(text) && !form) out.add('A rule that only excludes matches all other requests.')
  return [...out]
}

function matchesMost(c: Condition): boolean {
  if (c.op.startsWith('not ')) return true
  switch (c.op) {
    case 'ne': case 'is not': return true
    case 'is': return c.field === 'ssl'
    case 'contains': case 'starts_with': case 'ends_with': return c.value === '' || (c.value === '/' && c.op !== 'ends_with')
    case 'wildcard': return /^\/?\*+$/.test(c.value)
    case 'matches': return /^\^?(\/|\.\*|\.\+|)\$?$/.test(c.value)
    case 'eq': case 'in': return c.field === 'http.request.method' && listed(c.value).includes('GET')
    default: return false
  }
}

const anybodySends = (c: Condition) => kindOf(c.field) === 'map' || ['http.user_agent', 'http.referer', 'http.request.uri.query'].includes(c.field)

function wideNetwork(net: string): boolean {
  const bits = Number(net.split('/')[1] ?? NaN)
  return bits < (net.includes(':') ? 24 : 8)
}

export interface Sample {
  method: string
  url: string
  headers: Record<string, string>
  ip: string
}

/** A request as somebody pasted it: from curl, from a log of HTTP, or an address alone. */
export function requestOf(text: string, host = 'localhost'): Sample {
  const out: Sample = { method: 'GET', url: '', headers: {}, ip: '' }
  const t = text.trim().replace(/\\\r?\n/g, ' ')
  if (/^curl\s/.test(t)) {
    const args = [...t.matchAll(/'((?:[^']|'\\'')*)'|"((?:[^"\\]|\\[^])*)"|(\S+)/g)].map((m) => (m[1] !== undefined ? m[1].replace(/'\\''/g, "'") : m[2] !== undefined ? m[2].replace(/\\(["\\$`])/g, '$1') : m[3])).slice(1)
    for (let i = 0; i < args.length; i++) {
      const a = args[i]
      if (a === '-X' || a === '--request') out.method = (args[++i] ?? '').toUpperCase()
      else if (a === '-H' || a === '--header') header(out, args[++i] ?? '')
      else if (a === '-A' || a === '--user-agent') out.headers['user-agent'] = args[++i] ?? ''
      else if (a === '-b' || a === '--cookie') out.headers.cookie = args[++i] ?? ''
      else if (a === '-e' || a === '--referer') out.headers.referer = args[++i] ?? ''
      else if (/^(-d|--data.*|--json)$/.test(a)) { i++; if (out.method === 'GET') out.method = 'POST'; }
      else if (a === '-I' || a === '--head') out.method = 'HEAD'
      else if (a === '-o' || a === '--output' || a === '-m' || a === '--max-time' || a === '-u') i++
      else if (a[0] !== '-') out.url = a
    }
  } else {
    const [first, ...rest] = text.trim().split(/\r?\n/)
    const m = /^([A-Z]+)\s+(\S+)(?:\s+HTTP\/[\d.]+)?$/.exec(first.trim())
    if (m) [, out.method, out.url] = m
    else out.url = first.trim()
    for (const l of rest) {
      if (!l.trim()) break
      header(out, l)
    }
  }
  if (out.url.startsWith('/')) out.url = `https://${out.headers.host ?? host}${out.url}`
  else if (out.url && !/^https?:\/\//.test(out.url)) out.url = `https://${out.url}`
  return out
}

function header(s: Sample, line: string) {
  const i = line.indexOf(':', 1)
  if (i > 0) s.headers[line.slice(0, i).trim().toLowerCase()] = line.slice(i + 1).trim()
}
