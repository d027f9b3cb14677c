import { exchange, Problem } from './api'
import { away, end, known, session, type Session } from './session'

const write = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'X-Anteroom': 'dashboard' },
  body: JSON.stringify(body),
})

// Somebody else does not find what a person has left unsaved.
const enter = (who: Session) => {
  if (away.value && known(who) !== known(away.value)) away.set(null)
  session.set(who)
  away.set(null)
}

export async function login(token: string, link = false) {
  enter((await exchange<Session>('/dash/login', write({ token, link }))).result)
}

/** Goes on if the person has logged in meanwhile, in another tab. */
export async function again() {
  await exchange<Session>('/dash/session', {}).then((a) => enter(a.result), () => {})
}

/** Where people can sign in without a token, in the words of the configuration; null when nowhere. */
export const signIn = async () => (await exchange<{ sign_in: string | null }>('/dash/ways', {})).result.sign_in

export async function logout() {
  await exchange('/dash/logout', write({})).catch(() => {})
  end()
}

/**
 * Asks who is logged in. A token in the fragment of the address is taken out of it and logged in with,
 * unless somebody is: a link of somebody else's must not put a person to work under another token.
 */
export async function begin() {
  const token = /^#token=([\w-]{40,80})$/.exec(location.hash)?.[1]
  if (location.hash) history.replaceState(history.state, '', location.pathname + location.search)
  let refused: unknown
  try {
    if (token) return await login(token, true)
  } catch (e) {
    refused = e
  }
  try {
    enter((await exchange<Session>('/dash/session', {})).result)
  } catch (e) {
    session.set(null)
    if (!refused && e instanceof Problem && e.status !== 401) throw e
  }
  if (refused) throw refused
}
