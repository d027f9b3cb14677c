import { Store } from '../core/store'
import { follow, match, place } from '../core/router'
import { offered, pages, roomBase } from '../pages'
import { live } from '../core/live'
import { roomHref } from '../core/room'
import { session } from '../core/session'

/** What lies over the page: the search, or the help. */
export const over = new Store<'search' | 'help' | null>(null)

/** Whether letters alone do something. Who dictates to the computer switches them off. */
export const lettered = new Store((() => {
  try {
    return localStorage.getItem('anteroom.keys') !== 'off'
  } catch {
    return true
  }
})())

export function setLettered(on: boolean) {
  lettered.set(on)
  try {
    if (on) localStorage.removeItem('anteroom.keys')
    else localStorage.setItem('anteroom.keys', 'off')
  } catch {}
}

/** The room that the person looks at, if any. */
export function roomHere() {
  const parts = place.value.path.split('/')
  const p = match(roomBase, parts.slice(0, 4).join('/'))
  return p ? live.value.rooms.find((r) => r.zone.name === p.zone && r.name === p.room) : undefined
}

let led = 0 // when g was pressed

const typing = (e: KeyboardEvent) => {
  const t = e.target as HTMLElement
  return t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName)
}

export function followKeys() {
  addEventListener('keydown', (e) => {
    if (!session.value) return
    if ((e.ctrlKey || e.metaKey) && e.key === 'k') {
      e.preventDefault()
      over.set('search')
      return
    }
    if (e.ctrlKey || e.metaKey || e.altKey || typing(e) || !lettered.value || document.querySelector('dialog[open]')) return
    if (Date.now() - led < 1500) {
      led = 0
      const page = pages.find((p) => p.key === e.key && offered(p))
      if (!page) return
      e.preventDefault()
      if (page.of === 'all') follow(page.path)
      else {
        const room = roomHere() ?? (live.value.rooms.length === 1 ? live.value.rooms[0] : undefined)
        if (room) follow(roomHref(room, page.path.slice(roomBase.length + 1)))
        else over.set('search')
      }
      return
    }
    if (e.key === 'g') led = Date.now()
    else if (e.key === '/') {
      e.preventDefault()
      over.set('search')
    } else if (e.key === '?') over.set('help')
  })
}
