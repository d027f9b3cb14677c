import { clock, duration, near, number } from './format'
import type { Room, Sample, Status } from './live'

// A trend is taken over so many seconds, and needs that many to be one.
const window = 60
const least = 20

/** By how many people a second the line grows; null while that cannot be said. */
export function trend(samples: Sample[]): number | null {
  const last = samples.at(-1)
  if (!last) return null
  const part = samples.filter((s) => s.at > last.at - window)
  if (part.length < 2 || last.at - part[0].at < least) return null
  let x = 0, y = 0, xx = 0, xy = 0
  for (const s of part) {
    const t = s.at - last.at
    x += t
    y += s.waiting
    xx += t * t
    xy += t * s.waiting
  }
  const n = part.length, d = n * xx - x * x
  return d === 0 ? null : (n * xy - x * y) / d
}

/** The wait of somebody who joins now: the forecast, or what the limits say; '–' when nothing is known. */
export function newcomer(s: Status): string {
  const least = s.wait_of_newcomer_at_least_seconds, most = s.wait_of_newcomer_at_most_seconds
  if (s.wait_of_newcomer_seconds == null && least && most) return `${duration(least)} to ${duration(most)}`
  if (s.wait_of_newcomer_seconds == null && least) return `at least ${duration(least)}`
  return duration(s.wait_of_newcomer_seconds)
}

/** What happens now and what is to come, in two sentences. */
export function forecast(room: Room, samples: Sample[], now: number): { head: string; more: string } {
  const s = room.status
  if (!s) return { head: 'No node serves this room yet.', more: '' }
  const f = s.in_force
  const line = s.waiting + s.dormant
  const waiters = line === 1 ? '1 person is waiting.' : `${number(line)} people are waiting.`
  if (f?.suspended) return { head: 'The room is suspended.', more: 'Requests bypass it and are not counted; nothing below is enforced.' }
  if (room.controls.paused || f?.queue_all) return { head: line ? waiters : 'No visitors are waiting.', more: 'New visitors wait until you resume.' }
  if (f?.phase === 'prequeueing' && f.event) return { head: waiters, more: `“${f.event.name}” starts at ${clock(f.event.start)}; until then no visitors are admitted.` }
  if (!line) {
    const free = Math.max(0, s.total_active_users - s.active_users)
    return { head: 'No visitors are waiting.', more: free ? `${number(free)} of ${number(s.total_active_users)} active user slots ${free === 1 ? 'is' : 'are'} free.` : 'All active user slots are taken; the next visitor waits.' }
  }
  const wait = s.wait_of_newcomer_seconds == null ? (s.wait_of_newcomer_at_least_seconds ? ` New visitors wait ${newcomer(s)} according to the limits.` : '') : ` New visitors get in at about ${clock(now + s.wait_of_newcomer_seconds)} (${duration(s.wait_of_newcomer_seconds)}).`
  const slope = trend(samples)
  // Less than a person over the samples, or a line that would take more than a day, is no trend.
  const margin = Math.max(1 / window, line / 86400)
  if (slope == null) return { head: waiters, more: ('Measuring the pace of the queue…' + wait).trim() }
  if (slope < -margin) return { head: `${waiters} At this rate the queue is empty at ${near(now + line / -slope, now)}.`, more: `It shrinks by ${number(-slope * 60)} per minute.` + wait }
  if (slope > margin) return { head: `${waiters} The queue grows by ${number(slope * 60)} per minute.`, more: 'More visitors arrive than are admitted.' + wait }
  return { head: `${waiters} The queue keeps its length.`, more: 'As many visitors arrive as are admitted.' + wait }
}

/** How long somebody who joins now would wait under other limits, in seconds; null when that cannot be said. Rough: sessions are taken to last as long as those of the last minute. */
export function waitUnder(s: Status, limits: { total: number; pace: number }): number | null {
  const line = s.waiting + s.dormant
  const free = Math.max(0, limits.total - s.active_users - s.offered)
  const left = line - Math.min(free, limits.pace)
  if (left <= 0) return 0
  // Places that come free in a minute: as many as sessions began while all were taken.
  const turnover = s.active_users > 0 ? (s.admitted_last_minute / s.active_users) * limits.total : limits.pace
  const perMinute = Math.min(limits.pace, turnover)
  return perMinute > 0 ? (left / perMinute) * 60 : null
}
