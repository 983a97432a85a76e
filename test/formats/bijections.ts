/** Coordinate maps of matrices that are right by construction, and the same with one mistake. */

import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, binary, ceildiv, div, int, mod, mul, sub, variable } from '../../src/ir/expressions/expr.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import type { BinaryOp } from '../../src/ir/values/math.ts'
import type { Choices } from '../support/choices.ts'

const v = variable

/** Over i < m and j < n; the inverse is over x0, x1, … */
export interface CoordinateMap {
  readonly map: readonly Expr[]
  readonly inverse: readonly Expr[]
  readonly extents: readonly Expr[]
}

/** Coordinates of all boxes up to `most`, with their sizes. */
export function points(most: number): readonly ReadonlyMap<string, number>[] {
  const out: ReadonlyMap<string, number>[] = []
  for (let m = 1; m <= most; m++)
    for (let n = 1; n <= most; n++)
      for (let i = 0; i < m; i++)
        for (let j = 0; j < n; j++)
          out.push(
            new Map([
              ['m', m],
              ['n', n],
              ['i', i],
              ['j', j],
            ]),
          )
  return out
}

/** Whether map and inverse agree, and whether the map stays in range, at all of these points. */
export function holdsAt(
  m: CoordinateMap,
  at: readonly ReadonlyMap<string, number>[],
): readonly [boolean, boolean] {
  let inverse = true
  let range = true
  for (const p of at) {
    const mapped = m.map.map((e) => evaluate(e, p))
    const known = new Map([...p, ...mapped.map((x, k) => [`x${k}`, x] as const)])
    const back = m.inverse.map((e) => evaluate(e, known))
    if (back[0] !== p.get('i') || back[1] !== p.get('j')) inverse = false
    if (mapped.some((x, k) => x < 0 || x >= evaluate(m.extents[k]!, p))) range = false
  }
  return [inverse, range]
}

/** Blocks, reversals, skews and transpositions, one after the other. */
export function bijection(c: Choices): CoordinateMap {
  let forward: Expr[] = [v('i'), v('j')]
  let extents: Expr[] = [v('m'), v('n')]
  const undo: ((xs: readonly Expr[]) => readonly Expr[])[] = []
  const steps = c.between(1, 3)
  for (let s = 0; s < steps; s++) {
    const k = c.below(forward.length)
    const other = (k + 1) % forward.length
    const x = forward[k]!
    const n = extents[k]!
    const put = (list: readonly Expr[], ...xs: Expr[]): Expr[] => [
      ...list.slice(0, k),
      ...xs,
      ...list.slice(k + 1),
    ]
    switch (c.below(4)) {
      case 0: {
        const b = c.between(1, 4)
        forward = put(forward, div(x, int(b)), mod(x, int(b)))
        extents = put(extents, ceildiv(n, int(b)), int(b))
        undo.push((xs) => [...xs.slice(0, k), add(mul(xs[k]!, int(b)), xs[k + 1]!), ...xs.slice(k + 2)])
        break
      }
      case 1: {
        forward = put(forward, sub(sub(n, int(1)), x))
        undo.push((xs) => put(xs, sub(sub(n, int(1)), xs[k]!)))
        break
      }
      case 2: {
        extents = put(extents, sub(add(n, extents[other]!), int(1)))
        forward = put(forward, add(x, forward[other]!))
        undo.push((xs) => put(xs, sub(xs[k]!, xs[other]!)))
        break
      }
      default: {
        const swap = (list: readonly Expr[]): Expr[] => {
          const out = [...list]
          out[k] = list[other]!
          out[other] = list[k]!
          return out
        }
        forward = swap(forward)
        extents = swap(extents)
        undo.push(swap)
      }
    }
  }
  const names = forward.map((_, k) => v(`x${k}`))
  const inverse = undo.reduceRight<readonly Expr[]>((xs, u) => u(xs), names)
  return { map: forward, inverse, extents }
}

/** One constant, name or operator of one component changed; sometimes it makes no difference. */
export function mutated(m: CoordinateMap, c: Choices): CoordinateMap {
  const which = c.pick(['map', 'inverse', 'extents'] as const)
  const list = [...m[which]]
  const k = c.below(list.length)
  list[k] = changed(list[k]!, c, which === 'inverse' ? v('x0') : which === 'map' ? v('i') : v('m'))
  return { ...m, [which]: list }
}

function changed(e: Expr, c: Choices, name: Expr): Expr {
  if (e.kind === 'binary' && c.chance(70)) {
    const op: BinaryOp = c.pick(['add', 'sub', 'mul', 'min', 'max'])
    if (c.chance(20)) return binary(op, e.a, e.b)
    const left = c.chance(50)
    const divides = e.op === 'div' || e.op === 'mod'
    if (divides && !left) return e.b.kind === 'const' ? binary(e.op, e.a, int(e.b.value + 1)) : e
    return left ? binary(e.op, changed(e.a, c, name), e.b) : binary(e.op, e.a, changed(e.b, c, name))
  }
  return c.pick([add(e, int(c.between(1, 2))), sub(e, int(1)), name, int(0)])
}
