// Events: where one stands, what it would have instead of the room's settings, and what is wrong
// with a plan before the API is asked.
import { eventFields, type Field, fieldOf, type Values } from './fields'
import { clocks } from '../../core/kept'
import { same } from './diff'

export type Phase = 'suspended' | 'upcoming' | 'prequeueing' | 'running' | 'over'

export const begins = (e: Values): number => Date.parse(e.prequeue_start_time || e.event_start_time)

/** Where the first occurrence of an event stands. */
export function phaseOf(e: Values, now: number): Phase {
  if (now >= Date.parse(e.event_end_time)) return e.repeat ? 'upcoming' : 'over'
  if (e.suspended) return 'suspended'
  if (now >= Date.parse(e.event_start_time)) return 'running'
  return now >= begins(e) ? 'prequeueing' : 'upcoming'
}

/** Events by what an operator looks for: what runs, what comes, what was, the latest first. */
export function sorted(all: readonly Values[], now: number): Values[] {
  const rank = (e: Values) => ({ running: 0, prequeueing: 0, upcoming: 1, suspended: 1, over: 2 })[phaseOf(e, now)]
  return [...all].sort((a, b) => rank(a) - rank(b) || (rank(a) === 2 ? -1 : 1) * (begins(a) - begins(b)))
}

export interface Inherited {
  field: Field
  room: unknown
  own: boolean // the event has a value of its own
  value: unknown // in force while it runs
}

/** Room and event side by side. */
export const sideBySide = (room: Values, event: Values): Inherited[] =>
  eventFields.map((field) => {
    const set = event[field.name]
    const own = set !== null && set !== undefined
    return { field, room: room[field.name], own, value: own ? set : room[field.name] }
  })

const minute = 60_000
const plain = (t: number) => new Date(t).toISOString().replace('.000Z', 'Z')

/** What is wrong with an event, by field. */
export function faults(e: Values, others: readonly Values[]): Record<string, string> {
  const out: Record<string, string> = {}
  const start = Date.parse(e.event_start_time ?? ''), end = Date.parse(e.event_end_time ?? ''), pre = e.prequeue_start_time ? Date.parse(e.prequeue_start_time) : NaN
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(e.name ?? '')) out.name = '1 to 64 letters, digits, _ and -'
  else if (others.some((o) => o.id !== e.id && o.name === e.name)) out.name = 'another event in this room has this name'
  if (Number.isNaN(start)) out.event_start_time = 'a day and a time'
  if (Number.isNaN(end)) out.event_end_time = 'a day and a time'
  else if (end < start + minute) out.event_end_time = 'at least a minute after the start'
  if (e.prequeue_start_time && !(pre + 5 * minute <= start)) out.prequeue_start_time = 'at least five minutes before the start'
  if (e.shuffle_at_event_start && !e.prequeue_start_time) out.shuffle_at_event_start = 'needs a prequeue'
  const tau = e.total_active_users ?? null, numbers = e.new_users_per_minute ?? null
  if ((tau === null) !== (numbers === null)) out[tau === null ? 'total_active_users' : 'new_users_per_minute'] = 'set both limits or neither'
  else if (tau !== null && numbers > tau) out.new_users_per_minute = 'at most the number of active users'
  for (const o of others) {
    if (o.id === e.id || Number.isNaN(start) || Number.isNaN(end)) continue
    if (begins(e) < Date.parse(o.event_end_time) && begins(o) < end) out.event_start_time ??= `overlaps with ${o.name}`
  }
  return out
}

// What the clock that is shown is ahead of UTC at a moment, in milliseconds.
const ahead = (t: Date) => (clocks.value === 'UTC' ? 0 : -t.getTimezoneOffset() * minute)

/** A moment for <input type="datetime-local">, by the clock that is shown. */
export function toLocal(moment: string | null | undefined): string {
  const t = new Date(moment ?? NaN)
  if (Number.isNaN(t.getTime())) return ''
  return new Date(+t + ahead(t)).toISOString().slice(0, t.getUTCSeconds() ? 19 : 16)
}

/** The moment that was typed, in UTC; null for none. */
export function fromLocal(text: string): string | null {
  const t = new Date(text ? text + (clocks.value === 'UTC' ? 'Z' : '') : NaN)
  return Number.isNaN(t.getTime()) ? null : plain(+t)
}

/** A new event as the form begins: an hour tomorrow at the full hour. */
export function draft(now: number): Values {
  const start = Math.ceil(now / 3_600_000) * 3_600_000 + 24 * 3_600_000
  const e: Values = { name: '', description: '', event_start_time: plain(start), event_end_time: plain(start + 3_600_000), prequeue_start_time: null, shuffle_at_event_start: false, suspended: false, ramp: [], repeat: null }
  for (const f of eventFields) e[f.name] = null
  return e
}

/** What most events are, as the form offers it first. */
export const presets: { value: string; text: string; help: string; gather: number; shuffle: boolean }[] = [
  { value: 'draw', text: 'Sale, random order', help: 'Visitors gather for 30 minutes. At the start they get random places: being early is no advantage.', gather: 30, shuffle: true },
  { value: 'first', text: 'Sale, first come', help: 'Visitors gather for 30 minutes and are admitted in the order in which they came.', gather: 30, shuffle: false },
  { value: 'other', text: 'Other settings for a while', help: 'Nobody waits before the start. The event only changes settings of the room.', gather: 0, shuffle: false },
]

/** How many minutes before its start an event begins to gather visitors. */
export const gathers = (e: Values): number => (e.prequeue_start_time ? Math.round((Date.parse(e.event_start_time) - Date.parse(e.prequeue_start_time)) / minute) : 0)

/** The prequeue of an event as many minutes before its start; without one there is nothing to shuffle. */
export const gathering = (e: Values, minutes: number): Values =>
  minutes ? { prequeue_start_time: plain(Date.parse(e.event_start_time) - minutes * minute) } : { prequeue_start_time: null, shuffle_at_event_start: false }

/** An event that starts at another moment: as long, and gathering as long before. */
export function startingAt(e: Values, start: string | null): Values {
  const by = Date.parse(start ?? '') - Date.parse(e.event_start_time)
  const later = (m: string | null) => m && plain(Date.parse(m) + by)
  return Number.isNaN(by) ? { event_start_time: start } : { event_start_time: start, event_end_time: later(e.event_end_time), prequeue_start_time: later(e.prequeue_start_time) }
}

/** An event that ends so many minutes after its start. */
export const lasting = (e: Values, minutes: number): Values => ({ event_end_time: plain(Date.parse(e.event_start_time) + minutes * minute) })

const labels: Record<string, string> = { name: 'Name', event_start_time: 'Start', event_end_time: 'End', prequeue_start_time: 'Prequeue', shuffle_at_event_start: 'Shuffle' }

/** What a field is called on the screen. */
export const labelOf = (name: string): string => labels[name] ?? fieldOf(name)?.label ?? name

const written = ['name', 'description', 'event_start_time', 'event_end_time', 'prequeue_start_time', 'shuffle_at_event_start', 'suspended', 'ramp', 'repeat', ...eventFields.map((f) => f.name)]

/** What the API is sent of an event: all of it, or what is not as before. */
export function bodyOf(e: Values, before?: Values): Values {
  return Object.fromEntries(written.filter((n) => !before || !same(e[n], before[n])).map((n) => [n, e[n] ?? null]))
}

interface Step { after: string; over: string; new_users_per_minute: number; total_active_users: number }

const brief = (span: string): string => span.replace(/([hm])0[ms](0s)?$/, '$1')

/** The steps of a ramp as a person writes them: 0s 100, 10m 300/500, 20m+15m 900. */
export const rampText = (steps: Step[] | null): string =>
  (steps ?? []).map((s) => `${brief(s.after)}${s.over && s.over !== '0s' ? `+${brief(s.over)}` : ''} ${s.new_users_per_minute}${s.total_active_users ? `/${s.total_active_users}` : ''}`).join(', ')

/** Reads what rampText has written; null when it is none. */
export function readRamp(text: string): Step[] | null {
  const parts = text.split(',').map((s) => s.trim()).filter(Boolean)
  const steps = parts.map((s) => /^((?:\d+h)?(?:\d+m)?(?:\d+s)?)(?:\+((?:\d+h)?(?:\d+m)?\d+[hms]))?\s+(\d+)(?:\/(\d+))?$/.exec(s))
  return steps.every((m) => m?.[1]) ? steps.map((m) => ({ after: m![1], over: m![2] ?? '0s', new_users_per_minute: Number(m![3]), total_active_users: Number(m![4] ?? 0) })) : null
}

/** The links to what was measured of an event: from its prequeue to its end. */
export const spanOf = (e: Values): { from: number; to: number } => ({ from: begins(e), to: Date.parse(e.event_end_time) })

/** The moments of an event a whole number of weeks later, so that it begins after now. */
export function stampsAfter(e: Values, now: number): Values {
  const week = 7 * 86_400_000
  const by = Math.max(1, Math.ceil((now - begins(e)) / week)) * week
  const later = (m: string | null) => m && plain(Date.parse(m) + by)
  return { prequeue_start_time: later(e.prequeue_start_time), event_start_time: later(e.event_start_time), event_end_time: later(e.event_end_time) }
}
