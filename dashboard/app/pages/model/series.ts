// What the analytics of a room are answered with, and how it is read.
import { duration } from '../../core/format'

export interface Analytics {
  resolution: string
  every_seconds: number
  from: string
  to: string
  as_of: string
  incomplete: string
  time: number[] // seconds since 1970, without gaps
  series: Record<string, (number | null)[]>
  total: Record<string, number | null>
}

export const series = (a: Analytics, name: string): (number | null)[] => a.series[name] ?? a.time.map(() => null)

/** Two lines one upon the other: what the upper one reaches. */
export const stacked = (below: (number | null)[], above: (number | null)[]): (number | null)[] =>
  above.map((v, i) => (v === null && below[i] === null ? null : (v ?? 0) + (below[i] ?? 0)))

/** The same in minutes, for durations. */
export const inMinutes = (s: (number | null)[]): (number | null)[] => s.map((v) => (v === null ? null : v / 60))

/** "Typical" as published: the 50th to the 75th percentile. */
export function typical(total: Record<string, number | null>, span: string): string {
  const a = total[`${span}_p50`] ?? null, b = total[`${span}_p75`] ?? null
  if (a === null || b === null) return '–'
  const x = duration(a), y = duration(b)
  return x === y ? x : `${x} to ${y}`
}

/** The number of spans in which something was recorded. */
export const recorded = (a: Analytics): number => a.time.filter((_, i) => Object.values(a.series).some((s) => s[i] !== null && s[i] !== undefined)).length

/** Advice as published: what the numbers say about the session's duration and the limits. */
export function advice(a: Analytics, room: Record<string, any>): string[] {
  const out: string[] = []
  const session = Number(room.session_duration) * 60
  const top = a.total.on_origin_p95, usual = a.total.on_origin_p75
  if (session && top !== null && top !== undefined && top < 0.7 * session && (a.total.queued_users ?? 0) > 0) {
    out.push(`95 % of visits end within ${duration(top)}, well below the session duration of ${duration(session)}: a shorter one makes room for others sooner.`)
  }
  if (session && room.disable_session_renewal && usual !== null && usual !== undefined && usual >= 0.7 * session) {
    out.push(`Typical visits take ${duration(usual)} of the session duration of ${duration(session)}: a longer one keeps sessions from ending too early.`)
  }
  if ((a.total.waited_p50 ?? 0) > 1800) out.push('Half of the admitted visitors waited longer than half an hour: higher limits or shorter sessions reduce that, if the origin can handle it.')
  if ((a.total.no_shows ?? 0) > 0.2 * (a.total.joined ?? Infinity)) out.push('More than a fifth of the called visitors did not come: they may close the waiting page too early.')
  return out
}

/** The published query for the same figures. */
export function graphql(zone: string, room: string, a: Pick<Analytics, 'from' | 'to' | 'resolution'>): string {
  const dimension = ({ minute: 'datetimeMinute', quarter: 'datetimeFifteenMinutes', hour: 'datetimeHour', day: 'date' } as Record<string, string>)[a.resolution] ?? 'datetimeMinute'
  return `{
  viewer {
    zones(filter: {zoneTag: ${JSON.stringify(zone)}}) {
      waitingRoomAnalyticsAdaptiveGroups(
        limit: 10000
        filter: {datetime_geq: ${JSON.stringify(a.from)}, datetime_lt: ${JSON.stringify(a.to)}, waitingRoomId: ${JSON.stringify(room)}}
        orderBy: [${dimension}_ASC]
      ) {
        dimensions { ${dimension} }
        max { totalActiveUsers totalActiveUsersConfig totalQueuedUsers newUsersPerMinute maxEstimatedTimeMinutes }
        avg { newUsersPerMinute newUsersPerMinuteConfig totalActiveUsers totalQueuedUsers }
        avgWeighted { totalTimeWaitedP50 totalTimeWaitedP95 timeOnOriginP50 timeOnOriginP95 }
      }
    }
  }
}`
}
