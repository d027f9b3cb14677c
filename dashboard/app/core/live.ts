import { Store, useStore } from './store'
import { away, lose, session } from './session'

export interface Controls {
  paused: boolean
  draining: boolean
  reset_at: string | null
  message: string | null
  /** How many are left of what visitors wait for; null: not said. At 0 the room is closed. */
  remaining: number | null
}

export interface InForce {
  phase: 'none' | 'prequeueing' | 'started'
  event: { id: string; name: string; occurrence: number; prequeue: string | null; start: string; end: string } | null
  until: string | null
  queueing_method: string
  queue_all: boolean
  draining: boolean
  suspended: boolean
  session_duration_seconds: number
  disable_session_renewal: boolean
}

export interface LaneStatus {
  /** null: that of all others, which the room does not name. */
  name: string | null
  priority: number
  share: number
  reserved: number
  waiting: number
  active_users: number
  wait_of_newcomer_seconds: number | null
}

export interface Status {
  mode: 'open' | 'queue' | 'cut'
  active_users: number
  total_active_users: number
  admitted_last_minute: number
  new_users_per_minute: number
  /** New users per minute that are admitted now, and why that is less than the limit; null: it is not. */
  pace_per_minute: number
  pace_reason: 'origin_down' | 'origin_errors' | 'origin_slow' | 'origin_recovering' | null
  waiting: number
  dormant: number
  offered: number
  streams: number
  oldest_waiting_since: string | null
  wait_of_newcomer_seconds: number | null
  wait_of_newcomer_at_least_seconds: number | null
  wait_of_newcomer_at_most_seconds: number | null
  /** The highest priority first. */
  lanes: LaneStatus[]
  in_force: InForce | null
}

/** A server behind the room's hosts, as the node that answers sees it. */
export interface Origin {
  url?: string
  healthy: boolean
  requests_last_minute: number
  error_share: number
  p50_seconds: number | null
  p95_seconds: number | null
  in_flight: number
}

/** A room in short, as GET /anteroom/v1/rooms has it, with its figures of this second. */
export interface Room {
  id: string
  name: string
  zone: { id: string; name: string }
  file: boolean
  routes: { host: string; path: string }[]
  total_active_users: number
  new_users_per_minute: number
  queueing_method: string
  queue_all: boolean
  suspended: boolean
  shadow: boolean
  lottery_percent: number
  controls: Controls
  events: number
  rules: number
  status: Status | null
  origins: Origin[] | null
  /** That which runs, or else comes next. */
  next_event: { id: string; name: string; prequeue: string | null; start: string; end: string } | null
}

/** A room at one second. */
export interface Sample {
  at: number // unix seconds
  active: number
  limit: number
  waiting: number
  admitted: number // in the last minute
  pace: number // the limit of that
}

export interface Live {
  state: 'connecting' | 'live' | 'stale'
  at: number // of the newest figures, by the server's clock, unix seconds; 0 before the first
  rooms: Room[]
  known: boolean // the first figures have come
}

/** Seconds of samples that are kept of each room. */
export const kept = 900

export const live = new Store<Live>({ state: 'connecting', at: 0, rooms: [], known: false })
export const useLive = () => useStore(live)
export const useRooms = () => useStore(live, (l) => l.rooms)

const samples = new Map<string, Sample[]>()

/** The last samples of a room, the oldest first. */
export const samplesOf = (id: string): Sample[] => samples.get(id) ?? []

const rooms = new Map<string, Room>()
let source: EventSource | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let hidden: ReturnType<typeof setTimeout> | undefined

// After so long without figures they are called old, in milliseconds.
const patience = 4000

function take(text: string) {
  const frame = JSON.parse(text) as { at: string; all?: boolean; rooms?: Room[]; gone?: string[] }
  if (frame.all) rooms.clear()
  for (const r of frame.rooms ?? []) rooms.set(r.id, r)
  for (const id of frame.gone ?? []) {
    rooms.delete(id)
    samples.delete(id)
  }
  const at = Date.parse(frame.at) / 1000
  for (const r of rooms.values()) {
    if (!r.status) continue
    const s = r.status
    let list = samples.get(r.id)
    if (!list) samples.set(r.id, (list = []))
    list.push({ at, active: s.active_users, limit: s.total_active_users, waiting: s.waiting, admitted: s.admitted_last_minute, pace: s.new_users_per_minute })
    if (list.length > kept) list.splice(0, list.length - kept)
  }
  const changed = frame.all || frame.rooms?.length || frame.gone?.length
  live.set({ state: 'live', at, known: true, rooms: changed ? [...rooms.values()] : live.value.rooms })
  clearTimeout(timer)
  timer = setTimeout(fade, patience)
}

const fade = () => live.update((l) => ({ ...l, state: l.known ? 'stale' : 'connecting' }))

function connect() {
  source?.close()
  if (!session.value) return
  const mine = (source = new EventSource('/dash/live'))
  mine.onmessage = (e) => take(e.data)
  mine.addEventListener('over', () => {
    mine.close()
    lose()
  })
  mine.onerror = () => {
    fade()
    // The browser tries again by itself unless it was refused.
    if (mine.readyState !== EventSource.CLOSED || mine !== source) return
    setTimeout(async () => {
      if (mine !== source) return
      const res = await fetch('/dash/session').catch(() => undefined)
      if (res?.status === 401) lose()
      else if (mine === source) connect()
    }, 2000)
  }
}

/** Asks for the figures anew: after the line was cut. */
export const reconnect = () => connect()

/** Follows the figures while somebody is logged in and looks. */
export function followLive() {
  const forget = () => {
    rooms.clear()
    samples.clear()
    live.set({ state: 'connecting', at: 0, rooms: [], known: false })
  }
  session.subscribe(() => {
    if (session.value) return connect()
    source?.close()
    source = undefined
    if (away.value) fade() // the page that waits behind the login keeps its room
    else forget()
  })
  away.subscribe(() => {
    if (!away.value && !session.value) forget()
  })
  // A browser has six connections to a host, and each stream is one: those of pages that were
  // left, which it may keep for the way back, and of tabs that nobody looks at would block the rest.
  const rest = () => {
    clearTimeout(hidden)
    source?.close()
    source = undefined
    fade()
  }
  const wake = () => {
    clearTimeout(hidden)
    if (!source || source.readyState === EventSource.CLOSED) connect()
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return wake()
    clearTimeout(hidden)
    hidden = setTimeout(rest, 15_000)
  })
  addEventListener('pagehide', rest)
  addEventListener('pageshow', (e) => e.persisted && wake())
}
