/**
 * Points that are likely the best without data: the heuristic default of each form of a space, and neighbours of a
 * point.
 */
import { resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { Decisions, type PartialPoint } from './decisions.ts'

/** Maximum number of forms; each is a kernel to compile. */
const MAX_FORMS = 16

/** Replays a rule with defaults; `undefined` if a step on coordinates is rejected. */
function replay(rule: (d: Decisions) => void, point: PartialPoint): Decisions | undefined {
  const d = new Decisions(point, true)
  return resultOrError(() => rule(d)) instanceof SptError ? undefined : d
}

/** The heuristic default, then its variants for the other partitions of loops (forms), at most `maxForms`. */
export function* formsOf(rule: (d: Decisions) => void, maxForms = MAX_FORMS): Generator<Decisions> {
  let count = 0
  const queue: { readonly point: PartialPoint; readonly first: number }[] = [{ point: {}, first: 0 }]
  for (let entry = queue.shift(); entry && count < maxForms; entry = queue.shift()) {
    const d = replay(rule, entry.point)
    if (!d) continue
    count++
    yield d
    const prefix: Record<string, number | string> = {}
    for (const [k, name] of d.forms.entries()) {
      const value = d.values[name]!
      if (k >= entry.first)
        for (const other of d.requests.find((a) => a.name === name)!.values)
          if (other !== value) queue.push({ point: { ...prefix, [name]: other }, first: k + 1 })
      prefix[name] = value
    }
  }
}

/**
 * Points with the form of `point` that differ in one decision: neighbouring values if they are ordered, otherwise any
 * other value.
 */
export function neighboursOf(rule: (d: Decisions) => void, point: PartialPoint): readonly PartialPoint[] {
  const d = replay(rule, point)
  if (!d) return []
  return d.requests.flatMap(({ name, values, ordered }) => {
    if (d.forms.includes(name)) return []
    const index = values.indexOf(d.values[name]!)
    const alternatives = ordered
      ? [values[index - 1], values[index + 1]]
      : values.filter((_, k) => k !== index)
    return alternatives.flatMap((v): readonly PartialPoint[] => {
      const neighbour = v === undefined ? undefined : replay(rule, { ...point, [name]: v })
      return neighbour ? [neighbour.values] : []
    })
  })
}
