/** Points that are likely the best of a space without data: each form of it under the best guesses, and what is near a point. */
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import { type Decided, Decisions } from './decisions.ts'

/** Forms that are told apart: each is a kernel to be made. */
const MOST_FORMS = 16

/** Refused on coordinates: nothing follows. */
function taken(rule: (d: Decisions) => void, point: Decided): Decisions | undefined {
  const d = new Decisions(point, true)
  return orRefused(() => rule(d)) instanceof SptError ? undefined : d
}

/** The heuristic default, then its variants for the other partitions of loops (`forms`), at most `most`. */
export function* formsOf(rule: (d: Decisions) => void, most = MOST_FORMS): Generator<Decisions> {
  let given = 0
  const open: { readonly fixed: Decided; readonly from: number }[] = [{ fixed: {}, from: 0 }]
  for (let next = open.shift(); next && given < most; next = open.shift()) {
    const d = taken(rule, next.fixed)
    if (!d) continue
    given++
    yield d
    const before: Record<string, number | string> = {}
    for (const [k, name] of d.forms.entries()) {
      const value = d.taken[name]!
      if (k >= next.from)
        for (const other of d.asked.find((a) => a.name === name)!.values)
          if (other !== value) open.push({ fixed: { ...before, [name]: other }, from: k + 1 })
      before[name] = value
    }
  }
}

/** Points of the form of `point` with one other decision: the numbers on both sides of an ordered one, all others else. */
export function nearOf(rule: (d: Decisions) => void, point: Decided): readonly Decided[] {
  const d = taken(rule, point)
  if (!d) return []
  return d.asked.flatMap(({ name, values, ordered }) => {
    if (d.forms.includes(name)) return []
    const at = values.indexOf(d.taken[name]!)
    const others = ordered ? [values[at - 1], values[at + 1]] : values.filter((_, k) => k !== at)
    return others.flatMap((v): readonly Decided[] => {
      const near = v === undefined ? undefined : taken(rule, { ...point, [name]: v })
      return near ? [near.taken] : []
    })
  })
}
