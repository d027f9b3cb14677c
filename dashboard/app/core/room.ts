import { ago, near } from './format'
import type { Room } from './live'
import { paceWhy } from './pace'

export type Tone = 'ok' | 'busy' | 'hold' | 'bad' | 'off' | 'event'

/** What a room does at the moment, in a word, with the tone and why. */
export function stateOf(r: Room): { word: string; tone: Tone; why: string } {
  const s = r.status
  const f = s?.in_force
  if (f?.suspended ?? r.suspended) return { word: 'Suspended', tone: 'off', why: 'Requests bypass the room, uncounted.' }
  if (r.shadow) return { word: 'Shadow', tone: 'event', why: 'Every visitor passes; the queue shows who would wait.' }
  if (!s) return { word: 'Not served', tone: 'off', why: 'No node serves this room yet.' }
  if (s.mode === 'cut') return { word: 'Cut off', tone: 'bad', why: 'This site has lost its connection to the others.' }
  if (r.controls.remaining === 0) return { word: 'Sold out', tone: 'bad', why: 'No one new is admitted; visitors see that nothing is left.' }
  if ((r.controls.draining || f?.draining) && (r.controls.paused || (f?.queue_all ?? r.queue_all))) return { word: 'Closed', tone: 'bad', why: 'New visitors are turned away, and visitors in the queue wait: the room drains and is paused.' }
  if (r.controls.draining || f?.draining) return { word: 'Draining', tone: 'hold', why: 'New visitors are turned away; visitors in the queue are admitted.' }
  if ((f?.queueing_method ?? r.queueing_method) === 'reject') return { word: 'Rejecting', tone: 'bad', why: 'New visitors are turned away when the room is full.' }
  if (r.controls.paused) return { word: 'Paused', tone: 'hold', why: 'Every visitor without a session waits.' }
  if (f?.queue_all ?? r.queue_all) return { word: 'Queue all', tone: 'hold', why: 'Every visitor without a session waits.' }
  if (r.lottery_percent > 0) return { word: 'Lottery', tone: 'event', why: `There is no queue; each visitor has a chance of ${r.lottery_percent}% at most in each round.` }
  if (s.pace_reason) return { word: s.pace_reason === 'origin_down' ? 'Origin down' : 'Protecting', tone: s.pace_reason === 'origin_down' ? 'bad' : 'hold', why: paceWhy(s) }
  if (f?.phase === 'prequeueing') return { word: 'Prequeue', tone: 'event', why: `“${f.event?.name}” is about to start.` }
  if (s.mode === 'queue' || s.waiting > 0) return { word: 'Queueing', tone: 'busy', why: 'New visitors wait for their turn.' }
  if (f?.phase === 'started') return { word: 'Event', tone: 'event', why: `“${f.event?.name}” is active; no visitors are waiting.` }
  if ((f?.queueing_method ?? r.queueing_method) === 'passthrough') return { word: 'Passthrough', tone: 'ok', why: 'Every visitor is admitted and counted.' }
  return { word: 'Open', tone: 'ok', why: 'Visitors are admitted right away.' }
}

const tones: Tone[] = ['off', 'ok', 'event', 'hold', 'busy', 'bad']

/**
 * How much a room needs eyes: first what fails, then where people wait, the longest queue first. It changes
 * with the queue's digits only, so that rows do not swap places every second.
 */
export function urgency(r: Room): number {
  const tone = stateOf(r).tone
  return (tone === 'bad' ? 1000 : 0) + 10 * String(r.status?.waiting || '').length + tones.indexOf(tone)
}

/** The event of a room that runs or comes next, and how far it is at a second, line by line; null where none is planned. */
export function nextEvent(r: Room, now: number): { name: string; on: boolean; words: string[]; begins: number } | null {
  const e = r.next_event
  if (!e) return null
  const start = Date.parse(e.start) / 1000
  const begins = e.prequeue ? Date.parse(e.prequeue) / 1000 : start
  const words =
    now >= start ? [`until ${near(e.end, now)}`]
    : now >= begins ? ['prequeue', `starts ${near(start, now)}`]
    : [near(start, now), ago(start, now * 1000), ...(e.prequeue ? [`prequeue from ${near(begins, now, start)}`] : [])]
  return { name: e.name, on: now >= begins, words, begins }
}

/** What a room covers, in words. */
export function covers(r: Room, most = 3): string {
  const one = (x: { host: string; path: string }) => (x.host === '*' ? (x.path === '/' ? 'every address' : `${x.path} on every host`) : x.host + (x.path === '/' ? '' : x.path))
  const more = r.routes.length - most
  return r.routes.slice(0, most).map(one).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** A zone's name, in words where it is every host. */
export const zoneName = (name: string) => (name === '*' ? 'every host' : name)

/** Where a room's page is; tab like "settings". */
export const roomHref = (r: { name: string; zone: { name: string } }, tab = '') =>
  `/rooms/${encodeURIComponent(r.zone.name)}/${encodeURIComponent(r.name)}${tab ? '/' + tab : ''}`

/** Paths of a room in the published API and in ours. */
export const publishedPath = (r: { id: string; zone: { id: string } }) => `/client/v4/zones/${r.zone.id}/waiting_rooms/${r.id}`
export const ownPath = (r: { id: string; zone: { id: string } }) => `/anteroom/v1/zones/${r.zone.id}/rooms/${r.id}`
