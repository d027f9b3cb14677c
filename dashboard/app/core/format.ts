/** Numbers, moments and durations in the browser's language. */
import { clocks } from './kept'

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const tenth = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const share = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0 })

/** 12,345; a dash where there is no data. */
export const number = (n: number | null | undefined) => (n == null || Number.isNaN(n) ? '–' : whole.format(n))
/** Names in the order in which people look for them: room-2 before room-10. */
export const inOrder = new Intl.Collator(undefined, { numeric: true }).compare

export const decimal = (n: number | null | undefined) => (n == null || Number.isNaN(n) ? '–' : tenth.format(n))
/** 12k */
export const compact = (n: number | null | undefined) => (n == null || Number.isNaN(n) ? '–' : Math.abs(n) < 10_000 ? whole.format(n) : short.format(n))
export const percent = (n: number | null | undefined) => (n == null || !Number.isFinite(n) ? '–' : share.format(n))

const unit = (u: string) => {
  const f = new Intl.NumberFormat(undefined, { style: 'unit', unit: u, unitDisplay: 'narrow', maximumFractionDigits: 0 })
  return (n: number) => f.format(n)
}
const seconds = unit('second'), minutes = unit('minute'), hours = unit('hour'), days = unit('day')

/** 45s, 3m 20s, 2h 5m, 4d 3h; a dash where there is none. */
export function duration(s: number | null | undefined): string {
  if (s == null || Number.isNaN(s)) return '–'
  s = Math.max(0, Math.round(s))
  const two = (a: string, n: number, b: (n: number) => string) => (n ? a + ' ' + b(n) : a)
  if (s < 60) return seconds(s)
  if (s < 600) return two(minutes(Math.floor(s / 60)), s % 60, seconds)
  if (s < 3600) return minutes(Math.round(s / 60))
  if (s < 86400) return two(hours(Math.floor(s / 3600)), Math.floor((s % 3600) / 60), minutes)
  return two(days(Math.floor(s / 86400)), Math.floor((s % 86400) / 3600), hours)
}

const zoned = (options: Intl.DateTimeFormatOptions) => {
  const formats = { local: new Intl.DateTimeFormat(undefined, options), UTC: new Intl.DateTimeFormat(undefined, { ...options, timeZone: 'UTC' }) }
  return (d: Date) => formats[clocks.value].format(d)
}
const clockFormat = zoned({ hour: '2-digit', minute: '2-digit' })
const secondFormat = zoned({ hour: '2-digit', minute: '2-digit', second: '2-digit' })
const dayFormat = zoned({ day: 'numeric', month: 'short' })
const momentFormat = zoned({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const fullFormat = zoned({ dateStyle: 'medium', timeStyle: 'long' })

type Moment = string | number | Date | null | undefined
/** Numbers are unix seconds. */
const date = (m: Moment) => (m == null || m === '' ? null : new Date(typeof m === 'number' ? m * 1000 : m))
const say = (f: (d: Date) => string) => (m: Moment) => {
  const d = date(m)
  return d && !Number.isNaN(+d) ? f(d) : '–'
}

/** 14:20 */
export const clock = say(clockFormat)
/** 14:20:31 */
export const second = say(secondFormat)
/** 22 Nov */
export const day = say(dayFormat)
/** 22 Nov, 14:20 */
export const moment = say(momentFormat)
/** 14:20 where it is less than half a day from now, or on the day of what stands beside it; else 22 Nov, 14:20. now is in unix seconds. */
export function near(m: Moment, now: number, beside?: Moment): string {
  const d = date(m)
  return d && (Math.abs(+d / 1000 - now) < 43200 || (beside !== undefined && day(d) === day(beside))) ? clock(d) : moment(d)
}
/** With year and time zone, for titles. */
export const full = say(fullFormat)

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
/** in 3 minutes, yesterday */
export function ago(m: Moment, now = Date.now()): string {
  const d = date(m)
  if (!d) return '–'
  const s = (+d - now) / 1000
  const a = Math.abs(s)
  if (a < 60) return relative.format(Math.round(s), 'second')
  if (a < 3600) return relative.format(Math.round(s / 60), 'minute')
  if (a < 86400) return relative.format(Math.round(s / 3600), 'hour')
  return relative.format(Math.round(s / 86400), 'day')
}

/** "1 room", "3 rooms" */
export const count = (n: number, one: string, more = one + 's') => `${number(n)} ${n === 1 ? one : more}`
