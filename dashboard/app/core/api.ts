import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { lose, session } from './session'

/** One fault of the envelope. The pointer names a member of the body. */
export interface Fault {
  code: number
  message: string
  source?: { pointer: string }
}

/** What a call that failed is answered with. */
export class Problem extends Error {
  /** The object as it is now, where someone else changed it. */
  now?: any
  constructor(public status: number, public faults: Fault[]) {
    super(faults.map((f) => words(f.message)).join('; ') || 'Something went wrong')
  }
  /** The fault of each member, by its name as in the body ("total_active_users", "cookie_attributes.samesite"). */
  get fields(): Record<string, string> {
    const out: Record<string, string> = {}
    for (const f of this.faults) {
      const name = f.source?.pointer.replace(/^\//, '').replaceAll('/', '.')
      if (name) out[name] ??= words(f.message).replace(name + ': ', '')
    }
    return out
  }
}

const words = (message: string) => message.replace(/: invalid data$/, '')

export interface Answer<T> {
  result: T
  info?: { page: number; per_page: number; count: number; total_count: number; total_pages: number; cursors?: { after?: string } }
  messages: Fault[]
  etag: string
}

export interface CallOptions {
  signal?: AbortSignal
  ifMatch?: string
}

/** Where an operation of the APIs is reached from here: for downloads. */
export const address = (path: string) => '/dash/api' + path

/** Calls an operation of an API by its own path, like /anteroom/v1/rooms. Throws a Problem. */
export async function call<T = any>(method: string, path: string, body?: unknown, o: CallOptions = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (method !== 'GET') headers['X-Anteroom'] = 'dashboard'
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (o.ifMatch) headers['If-Match'] = o.ifMatch
  return exchange<T>(address(path), { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: o.signal })
}

export async function exchange<T>(url: string, init: RequestInit): Promise<Answer<T>> {
  let res: Response
  let envelope: any
  try {
    res = await fetch(url, { credentials: 'same-origin', cache: 'no-store', redirect: 'error', ...init })
    envelope = await res.json()
  } catch (e) {
    if ((e as Error).name === 'AbortError') throw e
    throw new Problem(0, [{ code: 0, message: 'The server does not respond. What you see may be out of date; check whether your change was made.' }])
  }
  if (!envelope.success) {
    if (res.status === 401 && url.startsWith('/dash/api/')) lose()
    throw new Problem(res.status, envelope.errors ?? [])
  }
  return { result: envelope.result, info: envelope.result_info, messages: envelope.messages ?? [], etag: res.headers.get('ETag') ?? '' }
}

export const get = <T = any>(path: string, o?: CallOptions) => call<T>('GET', path, undefined, o).then((a) => a.result)
export const post = <T = any>(path: string, body?: unknown, o?: CallOptions) => call<T>('POST', path, body, o).then((a) => a.result)
export const put = <T = any>(path: string, body?: unknown, o?: CallOptions) => call<T>('PUT', path, body, o).then((a) => a.result)
export const patch = <T = any>(path: string, body?: unknown, o?: CallOptions) => call<T>('PATCH', path, body, o).then((a) => a.result)
export const del = <T = any>(path: string, o?: CallOptions) => call<T>('DELETE', path, undefined, o).then((a) => a.result)

const conflict = (message: string) => new Problem(412, [{ code: 0, message }])
/** Why an Undo does nothing. */
export const theirs = () => conflict('someone else changed this in the meantime. Their change stays.')
const alike = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/**
 * Changes an object of a list, whose answer has no version for each, if it is still as it was shown. Otherwise it throws a Problem with
 * status 412, and the object as it is now.
 */
export async function callAsShown<T>(method: string, path: string, shown: T, body?: unknown): Promise<Answer<T>> {
  const now = await call<T>('GET', path)
  if (!alike(now.result, shown)) throw Object.assign(conflict('Someone else changed this in the meantime.'), { now: now.result })
  return call<T>(method, path, body, { ifMatch: now.etag })
}

/** Takes a change back: was are the members as they were, made is how the change was answered. What someone else has changed since stays. */
export async function putBack<T extends object>(path: string, was: Partial<T>, made: Answer<T>): Promise<Answer<T>> {
  try {
    return await call<T>('PATCH', path, was, { ifMatch: made.etag })
  } catch (e) {
    if (!(e instanceof Problem) || e.status !== 412) throw e
    const now = await call<T>('GET', path)
    if ((Object.keys(was) as (keyof T)[]).some((name) => !alike(now.result[name], made.result[name]))) throw theirs()
    return call<T>('PATCH', path, was, { ifMatch: now.etag })
  }
}

/** All pages of a list. */
export async function all<T = any>(path: string, o?: CallOptions): Promise<T[]> {
  const out: T[] = []
  for (let page = 1; ; page++) {
    const a = await call<T[]>('GET', path + (path.includes('?') ? '&' : '?') + `page=${page}&per_page=100`, undefined, o)
    out.push(...a.result)
    if (!a.info || page >= a.info.total_pages) return out
  }
}

export interface Asked<T> {
  data: T | undefined
  etag: string
  error: Problem | undefined
  loading: boolean
  /** Asks again, keeping what is there until the answer comes. */
  reload: () => void
  /** Puts another answer in its place: what a change was answered with. */
  put: (data: T, etag?: string) => void
}

/** What an operation answers, asked when the component appears and when the path changes; null asks nothing. */
export function useAsk<T = any>(path: string | null, every?: number): Asked<T> {
  const [state, set] = useState<{ path: string | null; data?: T; etag: string; error?: Problem }>({ path, etag: '' })
  const [turn, again] = useState(0)
  const loading = useRef(false)
  useEffect(() => {
    if (path === null) return
    const stop = new AbortController()
    loading.current = true
    call<T>('GET', path, undefined, { signal: stop.signal }).then(
      (a) => set({ path, data: a.result, etag: a.etag }),
      (e) => e instanceof Problem && set((s) => ({ path, data: s.path === path ? s.data : undefined, etag: s.etag, error: e })),
    ).finally(() => (loading.current = false))
    return () => stop.abort()
  }, [path, turn])
  useEffect(() => {
    if (!every || path === null) return
    const timer = setInterval(() => !document.hidden && session.value && again((n) => n + 1), every * 1000)
    return () => clearInterval(timer)
  }, [path, every])
  const here = state.path === path
  return {
    data: here ? state.data : undefined,
    etag: here ? state.etag : '',
    error: here ? state.error : undefined,
    loading: path !== null && (!here || (state.data === undefined && !state.error)),
    reload: useCallback(() => again((n) => n + 1), []),
    put: useCallback((data: T, etag = '') => set({ path, data, etag }), [path]),
  }
}
