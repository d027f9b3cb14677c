import { useEffect, useState } from 'preact/hooks'
import { get } from './api'
import type { Room, Sample } from './live'
import { ownPath } from './room'

interface Recorded {
  time: number[]
  every_seconds: number
  series: Record<string, (number | null)[] | undefined>
}

/** The minutes of a room before a moment, as they were recorded; empty while nobody knows. */
export function useMinutes(room: Room, seconds: number, to: number): Sample[] {
  const [list, set] = useState<Sample[]>([])
  useEffect(() => {
    if (!seconds) return
    const query = new URLSearchParams({ from: new Date((to - seconds) * 1000).toISOString(), to: new Date(to * 1000).toISOString(), resolution: 'minute' })
    const stop = new AbortController()
    get<Recorded>(`${ownPath(room)}/analytics?${query}`, { signal: stop.signal })
      .then((r) => {
        const v = (name: string, i: number) => r.series[name]?.[i] ?? null
        set(
          r.time.flatMap((t, i) => {
            const active = v('active_users_avg', i)
            const middle = t + r.every_seconds / 2
            if (active == null || middle >= to) return []
            return [{ at: middle, active, limit: v('active_limit', i) ?? NaN, waiting: v('queued_users_avg', i) ?? 0, admitted: v('new_users', i) ?? 0, pace: v('new_limit', i) ?? NaN }]
          }),
        )
      })
      .catch(() => {}) // nothing is recorded: what is shown begins now
    return () => stop.abort()
  }, [room.id, seconds, to])
  return list
}

/**
 * Those who came less those who left, in the minute before each sample; null where that minute is not known.
 * A minute ago, the queue was as long as the samples before and after that moment say.
 */
export function arrivals(samples: Sample[]): (number | null)[] {
  let j = 0
  return samples.map((s, i) => {
    const then = s.at - 60
    while (j + 1 < i && samples[j + 1].at <= then) j++
    const a = samples[j], b = samples[j + 1]
    if (!b || a.at > then || b.at - a.at > 100) return null
    const n = s.admitted + s.waiting - a.waiting - ((b.waiting - a.waiting) * (then - a.at)) / (b.at - a.at)
    return Number.isNaN(n) ? null : Math.max(0, Math.round(n))
  })
}

/** Samples with a hole, of figures that are no numbers, wherever some are missing. */
export function holed(samples: Sample[]): Sample[] {
  return samples.flatMap((s, i) => {
    const before = samples[i - 1]
    return before && s.at - before.at > 100 ? [{ at: before.at + 1, active: NaN, limit: NaN, waiting: NaN, admitted: NaN, pace: NaN }, s] : [s]
  })
}
