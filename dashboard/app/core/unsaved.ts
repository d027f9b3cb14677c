/** What is not saved, each with the question that is asked before it is left. */
export const unsaved = new Set<() => Promise<boolean>>()

/** Whether what is not saved may be given up: asked once, however much it is. */
export async function mayLeave(): Promise<boolean> {
  const [ask] = unsaved
  if (ask && !(await ask())) return false
  unsaved.clear()
  return true
}
