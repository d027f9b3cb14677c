import { Store, useStore } from './store'
import { exchange, Problem } from './api'

export type Permission = 'read' | 'edit' | 'admin'

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

/** The session is over: the login takes the page's place, which stays where it is. */
export const lose = () => session.set(null)

const write = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'X-Anteroom': 'dashboard' },
  body: JSON.stringify(body),
})

export async function login(token: string, link = false) {
  session.set((await exchange<Session>('/dash/login', write({ token, link }))).result)
}

export async function logout() {
  await exchange('/dash/logout', write({})).catch(() => {})
  lose()
}

/**
 * Asks who is logged in. A token in the fragment of the address is taken out of it and logged in with,
 * unless somebody is: a link of somebody else's must not put a person to work under another token.
 */
export async function begin() {
  const token = /^#token=([\w-]{40,80})$/.exec(location.hash)?.[1]
  if (location.hash) history.replaceState(null, '', location.pathname + location.search)
  let refused: unknown
  try {
    if (token) return await login(token, true)
  } catch (e) {
    refused = e
  }
  try {
    session.set((await exchange<Session>('/dash/session', {})).result)
  } catch (e) {
    session.set(null)
    if (!refused && e instanceof Problem && e.status !== 401) throw e
  }
  if (refused) throw refused
}

const rank: Permission[] = ['read', 'edit', 'admin']

/** Whether the person may do something in a room, with no room in a zone, with no zone everywhere. The server decides; this is for what to offer. */
export function may(permission: Permission, zone?: string, room?: string): boolean {
  return !!session.value?.grants.some(
    (g) => rank.indexOf(g.permission) >= rank.indexOf(permission) && (!g.zone || g.zone === zone) && (!g.room || g.room === room),
  )
}

/** Whether the person may do something somewhere, be it in one room. */
export const mayAnywhere = (permission: Permission): boolean => !!session.value?.grants.some((g) => rank.indexOf(g.permission) >= rank.indexOf(permission))
