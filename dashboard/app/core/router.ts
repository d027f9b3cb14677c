import { Store, useStore } from './store'
import { mayLeave, unsaved } from './unsaved'

/** Where the person is: the path with its query. The query holds what a link should hold, like a time range. */
export interface Place {
  path: string
  query: URLSearchParams
}

const read = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) })

export const place = new Store<Place>(read())
export const usePlace = () => useStore(place)

// The entries of the history are numbered, so that a step over something unsaved can be taken back until the person has answered.
const numberOf = (state: unknown): number => (typeof state === 'number' ? state : 0)
let at = numberOf(history.state)

addEventListener('popstate', async (e) => {
  const by = numberOf(e.state) - at
  if (by && unsaved.size) {
    history.go(-by)
    if (await mayLeave()) history.go(by)
    return
  }
  at += by
  place.set(read())
})

/** Goes to a path of the dashboard. */
export function go(href: string, how: { replace?: boolean } = {}) {
  if (how.replace) history.replaceState(at, '', href)
  else if (href !== location.pathname + location.search) history.pushState(++at, '', href)
  place.set(read())
}

/** Goes where the person wants to, if nothing unsaved holds them. */
export async function follow(href: string) {
  if (href === location.pathname + location.search || (await mayLeave())) go(href)
}

/** Changes members of the query where we are; null takes one away. */
export function setQuery(changes: Record<string, string | null>, how: { replace?: boolean } = {}) {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  go(location.pathname + (text ? '?' + text : ''), how)
}

/** The parameters of a path by a pattern like /rooms/:zone/:room, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split('/')
  const have = path.replace(/(.)\/$/, '$1').split('/')
  if (want.length !== have.length) return null
  const params: Record<string, string> = {}
  for (let i = 0; i < want.length; i++) {
    if (want[i].startsWith(':')) {
      try {
        params[want[i].slice(1)] = decodeURIComponent(have[i])
      } catch {
        return null
      }
    } else if (want[i] !== have[i]) return null
  }
  return params
}

/** Paths of the listener that are no pages. */
const foreign = /^\/(dash|assets|preview|client|anteroom|metrics|-)(\/|$)/

/** Lets ordinary links move within the page: components write <a href>. */
export function followLinks() {
  document.addEventListener('click', (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
    const a = (e.target as Element).closest?.('a')
    if (!a || a.target || a.hasAttribute('download') || a.origin !== location.origin || foreign.test(a.pathname)) return
    const hash = a.getAttribute('href')?.startsWith('#')
    if (hash) return
    e.preventDefault()
    follow(a.pathname + a.search)
  })
}
