/**
 * Matching of kernels up to names. Axes, buffers, iterators and sizes are matched by their relations, iterators of an
 * iteration may be in any order, and operands of commutative operations may be swapped.
 */
import {
  type Axis,
  hasHoles,
  indexBits,
  isDense,
  isStored,
  padsWithLast,
  parentOf,
  sizesOfAxis,
} from '../ir/coordinates/axis.ts'
import type { Assign, Buffer1, Iteration, Kernel1, Reduce1, Stmt1 } from '../ir/coordinates/stage1.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { matches } from './expression-pattern.ts'

/** The counterparts of the pattern's names. */
export interface KernelMatch {
  /** Axes, except dense roots, which may match several axes of the same extent. */
  readonly axes: ReadonlyMap<string, string>
  readonly buffers: ReadonlyMap<string, string>
  /** Sizes and scalars, as expressions over the sizes and scalars of the kernel. */
  readonly params: ReadonlyMap<string, Expr>
}

interface Way extends KernelMatch {
  readonly iters: ReadonlyMap<string, string>
}

/** Returns the map with one more pair; null if either name is paired with another. */
function paired(
  map: ReadonlyMap<string, string>,
  from: string,
  to: string,
): ReadonlyMap<string, string> | null {
  const known = map.get(from)
  if (known !== undefined) return known === to ? map : null
  return [...map.values()].includes(to) ? null : new Map([...map, [from, to]])
}

/** Returns the match; null if the kernels differ. */
export function matchKernel(wanted: Kernel1, kernel: Kernel1): KernelMatch | null {
  const isScalar = (e: Expr): boolean =>
    e.kind === 'const' || (e.kind === 'var' && kernel.params.some((x) => x.name === e.name))
  const bodies = (
    pattern: readonly Stmt1[],
    actual: readonly Stmt1[],
    ways: readonly Way[],
  ): readonly Way[] => {
    if (pattern.length !== actual.length) return []
    return pattern.reduce<readonly Way[]>((now, p, k) => statement(p, actual[k]!, now), ways)
  }
  const statement = (p: Stmt1, a: Stmt1, ways: readonly Way[]): readonly Way[] => {
    if (p.kind === 'iterate' && a.kind === 'iterate') return iteration(p, a, ways)
    if (p.kind === 'assign' && a.kind === 'assign') return written(p, a, ways)
    if (p.kind !== 'reduce' || a.kind !== 'reduce' || p.reducer.name !== a.reducer.name) return []
    return written(p, a, ways)
  }
  const iteration = (p: Iteration, a: Iteration, ways: readonly Way[]): readonly Way[] => {
    if (p.iters.length !== a.iters.length || p.where.length > 0 || a.where.length > 0) return []
    const own = ways.map((w): Way => ({ ...w, iters: new Map() }))
    return bodies(p.body, a.body, own).flatMap((way) =>
      p.iters.reduce<readonly Way[]>(
        (now, iter) => {
          const other = a.iters.find((x) => x.name === way.iters.get(iter.name))
          return other && other.kind === iter.kind ? axisOf(iter.axis, other.axis, now) : []
        },
        [way],
      ),
    )
  }
  const written = (p: Assign | Reduce1, a: Assign | Reduce1, ways: readonly Way[]): readonly Way[] => {
    if (p.targets.length !== a.targets.length) return []
    const targets = p.targets.reduce<readonly Way[]>((now, t, k) => same(t, a.targets[k]!, now), ways)
    return p.values.reduce<readonly Way[]>((now, v, k) => same(v, a.values[k]!, now), targets)
  }
  const same = (pattern: Expr, actual: Expr, ways: readonly Way[]): readonly Way[] =>
    matches(pattern, actual, ways, (p, a, now) => {
      if (p.kind === 'load') {
        if (a.kind !== 'load' || p.dtype !== a.dtype || p.index.length !== a.index.length) return []
        const buffers = buffer(p.buffer, a.buffer, now)
        return p.index.reduce<readonly Way[]>((x, i, k) => same(i, a.index[k]!, x), buffers)
      }
      if (p.kind !== 'var') return undefined
      const param = wanted.params.find((x) => x.name === p.name)
      if (param?.kind === 'scalar') return isScalar(a) ? paramOf(p.name, a, now) : []
      if (param) return paramOf(p.name, a, now)
      return a.kind === 'var' && !kernel.params.some((x) => x.name === a.name)
        ? now.flatMap((w) => {
            const iters = paired(w.iters, p.name, a.name)
            return iters ? [{ ...w, iters }] : []
          })
        : []
    })
  const paramOf = (name: string, is: Expr, ways: readonly Way[]): readonly Way[] =>
    ways.flatMap((w) => {
      const known = w.params.get(name)
      if (known) return keyOf(known) === keyOf(is) ? [w] : []
      return [{ ...w, params: new Map([...w.params, [name, is]]) }]
    })
  const buffer = (p: string, a: string, ways: readonly Way[]): readonly Way[] => {
    const own = wanted.buffers.find((b) => b.name === p)
    const other = kernel.buffers.find((b) => b.name === a)
    if (!own || !other || !alike(own, other)) return []
    const known = ways.flatMap((w) => {
      const buffers = paired(w.buffers, p, a)
      return buffers ? [{ ...w, buffers }] : []
    })
    return own.axes.reduce<readonly Way[]>((now, axis, k) => axisOf(axis, other.axes[k]!, now), known)
  }
  const axisOf = (p: string, a: string, ways: readonly Way[]): readonly Way[] => {
    const own = wanted.axes.find((x) => x.name === p)
    const other = kernel.axes.find((x) => x.name === a)
    if (!own || !other || !storedAlike(own, other)) return []
    // Dense roots of one extent have the same coordinates, so any of them matches.
    const isRange = isDense(own) && parentOf(own) === null
    const known = ways.flatMap((w) => {
      const axes = isRange ? w.axes : paired(w.axes, p, a)
      return axes ? [{ ...w, axes }] : []
    })
    const [parent, otherParent] = [parentOf(own), parentOf(other)]
    if ((parent === null) !== (otherParent === null)) return []
    const below = parent === null ? known : axisOf(parent, otherParent!, known)
    if (!isStored(own) || !isStored(other)) return []
    const sizes = sizesOfAxis(other)
    return sizesOfAxis(own).reduce<readonly Way[]>(
      (now, e, k) =>
        e.kind === 'var' ? paramOf(e.name, sizes[k]!, now) : keyOf(e) === keyOf(sizes[k]!) ? now : [],
      below,
    )
  }
  const none: Way = { axes: new Map(), buffers: new Map(), params: new Map(), iters: new Map() }
  return bodies(wanted.body, kernel.body, [none])[0] ?? null
}

const alike = (p: Buffer1, a: Buffer1): boolean =>
  p.dtype === a.dtype &&
  p.role === a.role &&
  p.fill === a.fill &&
  p.accumulate === a.accumulate &&
  !a.table &&
  p.axes.length === a.axes.length

/** Returns whether two stored axes have the same kind, index width, ordering, uniqueness, padding and holes, and the same number of sizes. */
function storedAlike(p: Axis, a: Axis): boolean {
  if (p.kind !== a.kind || !isStored(p) || !isStored(a)) return false
  const flag = (x: Axis, name: 'ordered' | 'unique'): boolean => name in x && !!x[name as keyof Axis]
  return (
    indexBits(p) === indexBits(a) &&
    flag(p, 'ordered') === flag(a, 'ordered') &&
    flag(p, 'unique') === flag(a, 'unique') &&
    padsWithLast(p) === padsWithLast(a) &&
    hasHoles(p) === hasHoles(a) &&
    sizesOfAxis(p).length === sizesOfAxis(a).length
  )
}
