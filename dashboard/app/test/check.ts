/** One case: its name, what is looked at, and what it must be. */
export type Case = [name: string, got: () => unknown, want: unknown]

export interface Fault {
  name: string
  fault: string
}

const text = (v: unknown) => JSON.stringify(v, null, 1) ?? 'undefined'

/** The cases of a table that are not as they must be. Kinds of spaces do not matter: browsers differ in them. */
export function check(about: string, cases: Case[]): { ran: number; faults: Fault[] } {
  const faults = cases.flatMap(([name, got, want]): Fault[] => {
    try {
      const is = text(got()).replace(/[\u00a0\u202f]/g, ' ')
      return is === text(want) ? [] : [{ name: `${about}: ${name}`, fault: `is ${is}, want ${text(want)}` }]
    } catch (e) {
      return [{ name: `${about}: ${name}`, fault: `throws ${e}` }]
    }
  })
  return { ran: cases.length, faults }
}
