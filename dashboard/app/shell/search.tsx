import { useId, useState } from 'preact/hooks'
import { number } from '../core/format'
import { useRooms } from '../core/live'
import { roomHref, stateOf } from '../core/room'
import { follow } from '../core/router'
import { useSession } from '../core/session'
import { useStore } from '../core/store'
import { offered, pages, roomBase } from '../pages'
import { Pill } from '../ui/basic'
import { Dialog } from '../ui/dialog'
import { Toggle } from '../ui/field'
import { Icon } from '../ui/icons'
import { lettered, over, roomHere, setLettered } from './keys'

/** Search over rooms and pages, and the help: what lies over the page. */
export function Over() {
  const what = useStore(over)
  if (what === 'search') return <Search />
  if (what === 'help') return <Help />
  return null
}

const close = () => over.set(null)

function Search() {
  const [text, set] = useState('')
  const [at, point] = useState(0)
  const rooms = useRooms()
  const id = useId()
  const here = roomHere()
  const found = [
    ...rooms.map((r) => ({ href: roomHref(r), title: r.name, more: r.zone.name, room: r })),
    ...(here ? pages.filter((p) => p.of === 'room' && !p.hidden).map((p) => ({ href: roomHref(here, p.path.slice(roomBase.length + 1)), title: `${here.name}: ${p.title}`, more: '', room: undefined })) : []),
    ...pages.filter((p) => p.of === 'all' && offered(p)).map((p) => ({ href: p.path, title: p.title, more: '', room: undefined })),
  ]
    .filter((f) => (f.title + ' ' + f.more).toLowerCase().includes(text.trim().toLowerCase()))
    .slice(0, 12)
  const chosen = Math.min(at, found.length - 1)
  const take = (href: string) => {
    close()
    follow(href)
  }
  const key = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') point(Math.min(chosen + 1, found.length - 1))
    else if (e.key === 'ArrowUp') point(Math.max(chosen - 1, 0))
    else if (e.key === 'Enter' && found[chosen]) take(found[chosen].href)
    else return
    e.preventDefault()
  }
  return (
    <Dialog title="Go to" onClose={close}>
      <input class="search" type="search" role="combobox" list={undefined} aria-label="Room or page" aria-expanded="true" aria-controls={id} aria-activedescendant={found[chosen] ? id + chosen : undefined}
        placeholder="Room or page" value={text} autofocus autocomplete="off" spellcheck={false}
        onInput={(e) => { set(e.currentTarget.value); point(0) }} onKeyDown={key} />
      <ul class="found" role="listbox" id={id} aria-label="Found">
        {found.map((f, i) => (
          <li key={f.href + f.title} id={id + i} role="option" aria-selected={i === chosen} onClick={() => take(f.href)} onMouseMove={() => point(i)}>
            <span>{f.title} <span class="quiet">{f.more}</span></span>
            {f.room ? <span class="end">{f.room.status && f.room.status.waiting > 0 && <span class="quiet">{number(f.room.status.waiting)} waiting</span>}<Pill tone={stateOf(f.room).tone}>{stateOf(f.room).word}</Pill></span> : <Icon name="right" size={16} />}
          </li>
        ))}
      </ul>
      {!found.length && <p class="quiet">Nothing found.</p>}
    </Dialog>
  )
}

function Help() {
  const on = useStore(lettered)
  const me = useSession()
  const keys: [string, string][] = [['/', 'Go to a room or page'], ['?', 'This help'], ...pages.filter((p) => p.key && offered(p)).map((p): [string, string] => [`g ${p.key}`, p.of === 'room' ? `${p.title} of the room` : p.title]), ['Esc', 'Close the dialog']]
  return (
    <Dialog title="Help" onClose={close}>
      <dl class="keys">
        {keys.map(([k, what]) => <div key={k}><dt>{k.split(' ').map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{what}</dd></div>)}
      </dl>
      <Toggle label="Single-key shortcuts" help="Turn this off if you use dictation. Ctrl K still opens the search." value={on} onChange={setLettered} />
      <p class="quiet">Anteroom {me?.version}. The page contains Preact and uPlot, see their <a href={document.querySelector<HTMLLinkElement>('link[rel="license"]')?.href} target="_blank" rel="noopener">licenses</a>.</p>
    </Dialog>
  )
}
