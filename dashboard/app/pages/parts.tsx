import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { all, Problem } from '../core/api'
import type { Room } from '../core/live'
import { may } from '../core/session'
import { unsaved } from '../core/unsaved'
import { Diff } from '../ui/diff'
import { Button, Note } from '../ui/basic'
import { confirm, Dialog } from '../ui/dialog'
import { around, lines, type Change } from './model/diff'
import { fieldOf } from './model/fields'

/** Whether the person may change the settings of a room here. */
export const editable = (room: Room) => !room.file && may('edit', room.zone.id, room.id)

/** Why they may not, where that is so. */
export function WhyNot({ room }: { room: Room }) {
  if (room.file) return <Note title="This room is defined in the configuration file">You can see its settings here, but only the file can change them. Pause, drain and admit work as usual.</Note>
  if (!may('edit', room.zone.id, room.id)) return <Note title="Read only">Your token can read this room, but not change it.</Note>
  return null
}

/** What will be different, texts of several lines by their lines. */
export function Changes({ list }: { list: Change[] }) {
  const long = (c: Change) => c.name === 'custom_page_html'
  return (
    <>
      {list.some((c) => !long(c)) && <Diff list={list.filter((c) => !long(c))} labels={Object.fromEntries(list.map((c) => [c.name, fieldOf(c.name)?.label ?? c.name]))} />}
      {list.filter(long).map((c) => <TextDiff key={c.name} name={c.name} before={String(c.before ?? '')} after={String(c.after ?? '')} />)}
    </>
  )
}

const shown = 300 // lines of a difference

export function TextDiff({ name, before, after }: { name: string; before: string; after: string }) {
  const all = around(lines(before, after))
  return (
    <figure class="lines">
      <figcaption><code>{name}</code></figcaption>
      <pre tabIndex={0} aria-label={`Changes of ${name}`}>
        {all.slice(0, shown).map((l, i) =>
          typeof l === 'number' ? <span key={i} class="skip">… {l} lines as before{'\n'}</span>
            : l.sign === '-' ? <del key={i}>- {l.text}{'\n'}</del>
              : l.sign === '+' ? <ins key={i}>+ {l.text}{'\n'}</ins>
                : <span key={i}>  {l.text}{'\n'}</span>)}
        {all.length > shown && <span class="skip">… and {all.length - shown} more</span>}
      </pre>
    </figure>
  )
}

/** Asks before the page or the tab is left while something is not saved, and keeps it when the session ends. */
export function useUnsaved(is: boolean, what = 'Your changes on this page are not saved.') {
  useLayoutEffect(() => { // at once: what comes right after saving is not asked about
    if (!is) return
    const ask = () => confirm({ title: 'Leave without saving?', danger: true, action: 'Leave', keep: 'Stay', body: <p>{what}</p> })
    const hold = (e: BeforeUnloadEvent) => e.preventDefault()
    unsaved.add(ask)
    addEventListener('beforeunload', hold)
    return () => {
      unsaved.delete(ask)
      removeEventListener('beforeunload', hold)
    }
  }, [is])
}

/** Shows what nobody can see again: only its own button closes it, and what else would is asked about. */
export function ShownOnce({ title, saved, more, onClose, children }: { title: string; saved: string; more?: ComponentChildren; onClose: () => void; children: ComponentChildren }) {
  useUnsaved(true, 'This is shown only once, and you have not confirmed that you saved it.')
  return <Dialog wide title={title} actions={<>{more}<Button kind="main" onClick={onClose}>{saved}</Button></>}>{children}</Dialog>
}

/** Saves a text as a file of the person. */
export function saveAs(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

/** All pages of a list. */
export function useList<T>(path: string): { data?: T[]; error?: Problem; reload: () => void } {
  const [state, set] = useState<{ data?: T[]; error?: Problem }>({})
  const [turn, again] = useState(0)
  useEffect(() => {
    const stop = new AbortController()
    all<T>(path, { signal: stop.signal }).then((data) => set({ data }), (error) => error instanceof Problem && set((s) => ({ ...s, error })))
    return () => stop.abort()
  }, [path, turn])
  return { ...state, reload: () => again((n) => n + 1) }
}

// What follows from every change says nothing in a line.
const usual = /(^|\.)(id|created_on|modified_on|created_by|revision|version|last_updated|made)$/

/** Whether the field of a recorded change says what somebody did. */
export const telling = (field: string): boolean => !usual.test(field)

/** The head of the column with what can be done to a row. */
export const deeds = <span class="unseen">Actions</span>
