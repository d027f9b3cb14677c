// What is different between two states of an object.
import { type Field, valueOf, type Values, withValue } from './fields'

export interface Change {
  name: string
  before: unknown
  after: unknown
}

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

export function changes(fields: readonly Field[], before: Values | null, after: Values): Change[] {
  return fields
    .map((f) => ({ name: f.name, before: valueOf(before, f.name), after: valueOf(after, f.name) }))
    .filter((c) => !same(c.before, c.after))
}

/** The body of a PATCH that makes the changes. */
export const patchOf = (all: readonly Change[]): Values => all.reduce<Values>((p, c) => withValue(p, c.name, c.after ?? null), {})

/** A value in a line. */
export function inWords(v: unknown): string {
  if (v === undefined || v === null) return 'not set'
  if (v === '') return 'empty'
  if (typeof v === 'boolean') return v ? 'on' : 'off'
  if (Array.isArray(v)) return v.length ? v.map((x) => (x && typeof x === 'object' ? `${x.host}${x.path}` : String(x))).join(', ') : 'none'
  return String(v)
}

export interface Line {
  sign: ' ' | '-' | '+'
  text: string
}

const cells = 4_000_000 // of the table below; longer texts are shown as one that goes and one that comes

/** The lines of two texts, those that only one of them has with its sign. */
export function lines(before: string, after: string): Line[] {
  const a = before ? before.split('\n') : []
  const b = after ? after.split('\n') : []
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const x = a.slice(head, a.length - tail)
  const y = b.slice(head, b.length - tail)
  const line = (sign: Line['sign']) => (text: string): Line => ({ sign, text })
  return [...a.slice(0, head).map(line(' ')), ...middle(x, y), ...a.slice(a.length - tail).map(line(' '))]
}

// The longest common lines stay.
function middle(x: string[], y: string[]): Line[] {
  const out: Line[] = []
  if (x.length * y.length > cells) {
    return [...x.map((text): Line => ({ sign: '-', text })), ...y.map((text): Line => ({ sign: '+', text }))]
  }
  const w = y.length + 1
  const best = new Uint32Array((x.length + 1) * w)
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      best[i * w + j] = x[i] === y[j] ? best[(i + 1) * w + j + 1] + 1 : Math.max(best[(i + 1) * w + j], best[i * w + j + 1])
    }
  }
  let i = 0, j = 0
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push({ sign: ' ', text: x[i++] }); j++ }
    else if (i < x.length && (j >= y.length || best[(i + 1) * w + j] >= best[i * w + j + 1])) out.push({ sign: '-', text: x[i++] })
    else out.push({ sign: '+', text: y[j++] })
  }
  return out
}

/** Lines with what is far from a change left out. */
export function around(all: readonly Line[], context = 2): (Line | number)[] {
  const near = all.map((_, i) => all.slice(Math.max(0, i - context), i + context + 1).some((l) => l.sign !== ' '))
  const out: (Line | number)[] = []
  let hidden = 0
  all.forEach((l, i) => {
    if (!near[i]) return void hidden++
    if (hidden) out.push(hidden)
    hidden = 0
    out.push(l)
  })
  if (hidden) out.push(hidden)
  return out
}
