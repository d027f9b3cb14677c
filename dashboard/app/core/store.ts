import { useEffect, useState } from 'preact/hooks'

/** A value that components follow. */
export class Store<T> {
  private listeners = new Set<() => void>()
  constructor(public value: T) {}
  set(value: T) {
    if (Object.is(value, this.value)) return
    this.value = value
    for (const l of [...this.listeners]) l()
  }
  update(change: (value: T) => T) {
    this.set(change(this.value))
  }
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

/** The value of a store, or what `pick` takes of it; the component is drawn anew when that changes. */
export function useStore<T>(store: Store<T>): T
export function useStore<T, S>(store: Store<T>, pick: (value: T) => S): S
export function useStore<T, S>(store: Store<T>, pick?: (value: T) => S): S | T {
  const take = () => (pick ? pick(store.value) : store.value)
  const [, draw] = useState<unknown>(take)
  useEffect(() => {
    draw(take)
    return store.subscribe(() => draw(take))
  }, [store])
  return take()
}
