/** Spaces drawn from numbers, small enough to be listed in another way than by walking. */
import type { Point, PointSpace } from '../../src/search/types.ts'
import type { Choices } from '../support/choices.ts'

interface Decided {
  readonly name: string
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
  /** Decided only where an earlier decision has this value. */
  readonly under: { readonly name: string; readonly value: number | string } | null
}

/** Two decisions that may not have these values together. */
interface Forbidden {
  readonly a: readonly [string, number | string]
  readonly b: readonly [string, number | string]
}

export interface DrawnSpace extends PointSpace {
  /** By listing all combinations, and leaving out those that are none. */
  readonly all: readonly Point[]
}

export function drawnSpace(c: Choices, withRest: boolean): DrawnSpace {
  const decided: Decided[] = []
  const decisions = c.between(1, 4)
  for (let k = 0; k < decisions; k++) {
    const ordered = c.below(2) === 0
    const values = Array.from({ length: 1 + c.below(3) }, (_, v) => (ordered ? 2 ** v : `v${v}`))
    const parent = decided.length > 0 && c.below(3) === 0 ? c.pick(decided) : null
    const under = parent && { name: parent.name, value: c.pick(parent.values) }
    decided.push({ name: `d${k}`, values, ordered, under })
  }
  const place = (): readonly [string, number | string] => {
    const d = c.pick(decided)
    return [d.name, c.pick(d.values)]
  }
  const forbidden = Array.from({ length: c.below(5) }, (): Forbidden => ({ a: place(), b: place() }))
  const isActive = (d: Decided, p: Point): boolean => d.under === null || p[d.under.name] === d.under.value
  const isLegal = (p: Point): boolean => !forbidden.some(({ a, b }) => p[a[0]] === a[1] && p[b[0]] === b[1])
  return {
    name: 'drawn',
    all: decided
      .reduce<readonly Point[]>(
        (ps, d) => ps.flatMap((p) => (isActive(d, p) ? d.values.map((v) => ({ ...p, [d.name]: v })) : [p])),
        [{}],
      )
      .filter(isLegal),
    next(partial) {
      const open = decided.find((d) => isActive(d, partial) && !(d.name in partial))
      if (!open) return null
      const values = open.values.filter((v) => isLegal({ ...partial, [open.name]: v }))
      return { name: open.name, values, ordered: open.ordered }
    },
    ...(withRest && { remainderKey: (partial) => JSON.stringify(partial) }),
  }
}
