import { Component, type ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { compact, inOrder, second } from '../core/format'
import { reconnect, useLive, useRooms } from '../core/live'
import { covers, roomHref, stateOf, zoneName } from '../core/room'
import { clocks, shownZone } from '../core/kept'
import { match, usePlace } from '../core/router'
import { logout } from '../core/login'
import { away, known, may, type Session, useSession } from '../core/session'
import { useStore } from '../core/store'
import { setTheme, theme, type Theme } from '../core/theme'
import { offered, pages, roomBase, type Page } from '../pages'
import { Button, Empty, Note, Pill, Skeleton, Tabs } from '../ui/basic'
import { Questions } from '../ui/dialog'
import { Icon } from '../ui/icons'
import { Toasts } from '../ui/toast'
import { over } from './keys'
import { Login, LoginAgain, Logo } from './login'
import { Over } from './search'

/** Everything: the login, or the navigation with a page. */
export function Shell() {
  const me = useSession(), gone = useStore(away)
  const who = me ?? gone
  return (
    <>
      {who ? <Inside key={known(who)} me={who} gone={!me} /> : me === null && <Login />}
      {!me && gone && <LoginAgain who={gone} />}
      <Questions />
      <Toasts />
    </>
  )
}

function find(path: string): { page: Page; params: Record<string, string> } | null {
  for (const page of pages) {
    const params = match(page.path, path)
    if (params) return { page, params }
  }
  return null
}

function Inside({ me, gone }: { me: Session; gone: boolean }) {
  const { path, query } = usePlace()
  useStore(clocks) // every time on the screen changes with it
  const [open, show] = useState(false)
  const main = useRef<HTMLElement>(null)
  const found = find(path)
  const first = useRef(true)
  useLayoutEffect(() => { // before the next key: later, it would take the focus from a field
    show(false)
    document.title = [found?.params.room, found && !(found.page.of === 'room' && found.page.path === roomBase) ? found.page.title : '', 'Anteroom'].filter(Boolean).join(' · ')
    if (first.current) {
      first.current = false
      return
    }
    scrollTo(0, 0)
    main.current?.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })
  }, [path])
  return (
    <div class={'shell' + (open ? ' open' : '') + (gone ? ' away' : '')}>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current?.focus() }}>Skip to content</a>
      <header class="top">
        <Button kind="quiet" icon="menu" label="Navigation" pressed={open} onClick={() => show(!open)} />
        <a class="brand" href="/"><Logo size={26} /> Anteroom</a>
        <Button kind="quiet" icon="search" label="Go to (key /)" onClick={() => { over.set('search') }} />
      </header>
      <Side path={path} me={me} />
      <div class="veil" onClick={() => show(false)} />
      <main id="main" ref={main} tabIndex={-1}>
        <Stale />
        <Guarded key={path}>
          {!found ? (
            <Empty page icon="info" title="There is no such page" action={<Button href="/" kind="main">Overview</Button>}>The dashboard has no page at this address.</Empty>
          ) : found.page.of === 'room' ? (
            <OfRoom page={found.page} params={found.params} query={query} />
          ) : (
            <found.page.view params={found.params} query={query} />
          )}
        </Guarded>
      </main>
      <Over />
    </div>
  )
}

function OfRoom({ page, params, query }: { page: Extract<Page, { of: 'room' }>; params: Record<string, string>; query: URLSearchParams }) {
  const { rooms, known } = useLive()
  const room = rooms.find((r) => r.zone.name === params.zone && r.name === params.room)
  if (!room)
    return known ? (
      <Empty page icon="info" title="There is no such room" action={<Button href="/" kind="main">Overview</Button>}>
        The zone {params.zone} has no room {params.room}, or your token cannot read it.
      </Empty>
    ) : (
      <Skeleton lines={6} />
    )
  const state = stateOf(room)
  const tabs = pages.filter((p) => p.of === 'room' && !p.hidden && (!p.needs || may(p.needs, room.zone.id, room.id)))
  return (
    <>
      <header class="head room">
        <div>
          <p class="crumbs"><a href="/">Rooms</a> <Icon name="right" size={14} /> {zoneName(room.zone.name)}</p>
          <h1 tabIndex={-1}>{room.name} <Pill tone={state.tone} title={state.why}>{state.word}</Pill></h1>
          <p class="lead">{covers(room)}{room.file && ' · defined in the configuration file'}</p>
        </div>
      </header>
      <Tabs label="The room's pages" items={tabs.map((t) => ({ href: roomHref(room, t.path.slice(roomBase.length + 1)), text: t.title, here: t === page }))} />
      <page.view key={page.path + room.id} params={params} query={query} room={room} />
    </>
  )
}

// So many rooms stand in the navigation; the search finds the others.
const mostListed = 12

function Side({ path, me }: { path: string; me: Session }) {
  const rooms = useRooms()
  const listed = rooms.toSorted((a, b) => (b.status?.waiting ?? 0) - (a.status?.waiting ?? 0) || inOrder(a.name, b.name))
    .slice(0, mostListed).toSorted((a, b) => inOrder(a.name, b.name))
  const list = pages.filter((p) => p.of === 'all' && !p.hidden && offered(p))
  const item = (p: Page) => (
    <li key={p.path}><a href={p.path} aria-current={p.path === path ? 'page' : undefined}><Icon name={p.icon} /> {p.title}</a></li>
  )
  return (
    <nav class="side" aria-label="Main">
      <a class="brand" href="/"><Logo size={28} /> Anteroom</a>
      <button type="button" class="find" onClick={() => over.set('search')}><Icon name="search" size={16} /> Go to <kbd>/</kbd></button>
      <ul>{list.slice(0, 1).map(item)}</ul>
      {listed.length > 0 && (
        <>
          <h2>Rooms</h2>
          <ul class="rooms">
            {listed.map((r) => {
              const s = stateOf(r)
              const href = roomHref(r)
              return (
                <li key={r.id}>
                  <a href={href} aria-current={path === href || path.startsWith(href + '/') ? 'true' : undefined} title={`${r.zone.name}: ${s.word}`}>
                    <span class={'dot ' + s.tone} aria-hidden="true" />
                    <span class="name">{r.name}</span>
                    <span class="unseen">{s.word}</span>
                    {!!r.status?.waiting && <span class="waiting" title="waiting">{compact(r.status.waiting)}</span>}
                  </a>
                </li>
              )
            })}
            {rooms.length > mostListed && <li><button type="button" onClick={() => over.set('search')}>{rooms.length - mostListed} more …</button></li>}
          </ul>
        </>
      )}
      {list.length > 1 && (
        <>
          <h2>Manage</h2>
          <ul>{list.slice(1).map(item)}</ul>
        </>
      )}
      <footer>
        <AsOf />
        <div class="me">
          <span title={`Logged in until ${second(me.ends)}`}><Icon name="lock" size={15} /> <span class="name">{me.name}</span></span>
          <ClockButton />
          <ThemeButton />
          <Button kind="quiet" small icon="keyboard" label="Help and keys (key ?)" onClick={() => { over.set('help') }} />
          <Button kind="quiet" small icon="logout" label="Log out" onClick={logout} />
        </div>
      </footer>
    </nav>
  )
}

const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }
const themeWords: Record<Theme, string> = { system: 'like the system', light: 'light', dark: 'dark' }

function ThemeButton() {
  const t = useStore(theme)
  return <Button kind="quiet" small icon={t === 'light' ? 'sun' : t === 'dark' ? 'moon' : 'auto'} label={`Colors: ${themeWords[t]}. Change to ${themeWords[next[t]]}`} onClick={() => setTheme(next[t])} />
}

function ClockButton() {
  const c = useStore(clocks)
  const other = c === 'UTC' ? 'local' : 'UTC'
  return <Button kind="quiet" small icon="clock" pressed={c === 'UTC'} label={`Times: ${shownZone()}. Change to ${other === 'UTC' ? 'UTC' : 'the time of this browser'}`} onClick={() => { clocks.set(other) }} />
}

function AsOf() {
  const l = useLive()
  return (
    <p class={'asof ' + l.state}>
      <span class="dot" aria-hidden="true" />
      {l.state === 'connecting' ? 'Connecting …' : l.state === 'stale' ? `Not live since ${second(l.at)}` : `Live, as of ${second(l.at)}${clocks.value === 'UTC' ? ' UTC' : ''}`}
    </p>
  )
}

/** Says that the figures are old. */
function Stale() {
  const l = useLive()
  if (l.state !== 'stale') return null
  return (
    <div class="banner" role="alert">
      <Icon name="warning" />
      <span>No figures since {second(l.at)}. What you see is out of date. The queue works without this page.</span>
      <Button small icon="refresh" onClick={reconnect}>Connect</Button>
    </div>
  )
}

/** A fault in one page leaves the navigation alone. */
class Guarded extends Component<{ children?: ComponentChildren }, { error?: Error }> {
  static getDerivedStateFromError(error: Error) {
    return { error }
  }
  render() {
    if (this.state.error) return <Note tone="bad" title="This page has an error" action={<Button small onClick={() => location.reload()}>Reload</Button>}>{String(this.state.error.message)}</Note>
    return this.props.children
  }
}
