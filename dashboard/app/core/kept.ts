import { Store } from './store'

/** A choice of the person's that the browser keeps: one of a few words, the first unless they chose another. */
export function kept<T extends string>(name: string, words: readonly T[]): Store<T> {
  const key = 'anteroom.' + name
  let was: string | null = null
  try {
    was = localStorage.getItem(key)
  } catch {}
  const store = new Store<T>(words.find((w) => w === was) ?? words[0])
  store.subscribe(() => {
    try {
      if (store.value === words[0]) localStorage.removeItem(key)
      else localStorage.setItem(key, store.value)
    } catch {} // then it is for this page only
  })
  return store
}

/** By which clock times are shown and typed: that of this browser, or UTC. */
export const clocks = kept('clocks', ['local', 'UTC'])

/** The time zone of all times on the screen, by its IANA name. */
export const shownZone = (): string => (clocks.value === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone)

/** Whether labels show the names that fields have in the API, in Terraform and in the file. */
export const names = kept('names', ['hidden', 'shown'])
