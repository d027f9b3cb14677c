// The range of time that a page shows. It is in the address, so that a link shows the same:
// ?range=24h is up to now, ?from=…&to=… stays.

export interface Range {
  from: number // milliseconds since 1970
  to: number
  live?: string // the word of a range up to now
}

export const words: readonly { word: string; label: string; ms: number }[] = [
  { word: '30m', label: '30 minutes', ms: 30 * 60_000 },
  { word: '1h', label: '1 hour', ms: 3_600_000 },
  { word: '6h', label: '6 hours', ms: 6 * 3_600_000 },
  { word: '24h', label: '24 hours', ms: 86_400_000 },
  { word: '7d', label: '7 days', ms: 7 * 86_400_000 },
  { word: '30d', label: '30 days', ms: 30 * 86_400_000 },
]

const usual = '24h'
export const shortest = 60_000 // a bar of the finest charts
export const longest = 400 * 86_400_000

const moment = (text: string | null): number => {
  if (!text) return NaN
  return /^\d{9,13}$/.test(text) ? Number(text) * (text.length > 10 ? 1 : 1000) : Date.parse(text)
}

/** The range of an address. What cannot be read is the usual range. */
export function rangeOf(query: URLSearchParams, now: number): Range {
  const from = moment(query.get('from'))
  const to = query.get('to') ? moment(query.get('to')) : now
  if (!Number.isNaN(from) && !Number.isNaN(to) && to > from) return bounded(from, to)
  const w = words.find((x) => x.word === query.get('range')) ?? words.find((x) => x.word === usual)!
  return { from: now - w.ms, to: now, live: w.word }
}

/** A range of whole minutes that is neither too short nor too long. */
export function bounded(from: number, to: number): Range {
  const a = Math.floor(from / 60_000) * 60_000
  const b = Math.max(Math.ceil(to / 60_000) * 60_000, a + shortest)
  return { from: Math.max(a, b - longest), to: b }
}

export const stamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** The query of an address for a range, with what else it had. */
export function queryOf(r: Range, others = new URLSearchParams()): string {
  const q = new URLSearchParams(others)
  for (const k of ['range', 'from', 'to']) q.delete(k)
  if (r.live) {
    if (r.live !== usual) q.set('range', r.live)
  } else {
    q.set('from', stamp(r.from))
    q.set('to', stamp(r.to))
  }
  // Colons are good in queries, and people read them.
  const text = q.toString().replace(/%3A/g, ':')
  return text && `?${text}`
}

/** The range of the same length before or after, or twice as long around its middle; never after now. */
export function moved(r: Range, by: 'back' | 'on' | 'out', now: number): Range {
  const length = r.to - r.from
  let { from, to } = r
  if (by === 'out') { from -= length / 2; to += length / 2; }
  else { const d = by === 'back' ? -length : length; from += d; to += d; }
  const late = Math.max(0, to - now)
  return bounded(from - (by === 'out' ? 0 : late), to - late)
}
