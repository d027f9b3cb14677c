import { exchange, Problem } from './api'
import { lose, session, type Session } from './session'

const write = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'X-Anteroom': 'dashboard' },
  body: JSON.stringify(body),
})

export async function login(token: string, link = false) {
  session.set((await exchange<Session>('/dash/login', write({ token, link }))).result)
}

/** Where people can sign in without a token, in the words of the configuration; null when nowhere. */
export const signIn = async () => (await exchange<{ sign_in: string | null }>('/dash/ways', {})).result.sign_in

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
