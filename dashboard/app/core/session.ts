import { Store, useStore } from './store'
import { unsaved } from './unsaved'

export type Permission = 'scrape' | 'read' | 'edit' | 'admin'

/** Who is logged in, with what the token grants. */
export interface Session {
  name: string
  token: string | null
  grants: { permission: Permission; zone: string | null; room: string | null }[]
  ends: string
  version: string
}

/** undefined while nobody knows, null when nobody is logged in. */
export const session = new Store<Session | null | undefined>(undefined)
export const useSession = () => useStore(session)

/** Whose session has ended while something was not saved: it waits behind the login. */
export const away = new Store<Session | null>(null)

/** By what a person is known again. */
export const known = (s: Session): string => `${s.name} ${s.token}`

/** The session is over: the login takes the page's place, which stays where it is. */
export const lose = () => {
  if (session.value && unsaved.size) away.set(session.value)
  session.set(null)
}

/** The person logs out, and takes nothing along. */
export const end = () => {
  away.set(null)
  session.set(null)
}

const rank: Permission[] = ['scrape', 'read', 'edit', 'admin']

/** Whether the person may do something in a room, with no room in a zone, with no zone everywhere. The server decides; this is for what to offer. */
export function may(permission: Permission, zone?: string, room?: string): boolean {
  return !!(session.value ?? away.value)?.grants.some(
    (g) => rank.indexOf(g.permission) >= rank.indexOf(permission) && (!g.zone || g.zone === zone) && (!g.room || g.room === room),
  )
}

/** Whether the person may do something somewhere, be it in one room. */
export const mayAnywhere = (permission: Permission): boolean => !!(session.value ?? away.value)?.grants.some((g) => rank.indexOf(g.permission) >= rank.indexOf(permission))
