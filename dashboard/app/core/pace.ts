import { number } from './format'
import type { Status } from './live'

/** Why a room admits fewer than its limit, in a sentence; empty when it does not. */
export function paceWhy(s: Status): string {
  const now = `${number(s.pace_per_minute)} of ${number(s.new_users_per_minute)} new users per minute`
  switch (s.pace_reason) {
    case 'origin_down': return 'No origin answers: no new visitors are admitted until one does.'
    case 'origin_errors': return `The origin fails too often: ${now} are admitted.`
    case 'origin_slow': return `The origin is too slow: ${now} are admitted.`
    case 'origin_recovering': return `The origin is recovering: ${now} are admitted, soon more.`
  }
  return ''
}
