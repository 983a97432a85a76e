/** Where nonunique axes begin new positions although their coordinate is that of the entry before. */
import { add, binary, type Expr, eq, int, mod, variable } from '../../../ir/expr.ts'
import { write } from './column-types.ts'
import type { Frame } from './frame.ts'
import { flag, store } from './kernel.ts'
import { type Dimension, isRepeating } from './level.ts'
import { differs } from './order.ts'
import { scan } from './scan.ts'

/** Holds where one of `keys` is not that of the entry before, or `cut` is 1. */
export interface Starts {
  readonly keys: readonly Expr[]
  readonly cut: Expr | null
}

/** A condition on entries, ready for kernels. */
export interface Condition extends Pick<ReturnType<Frame['terms']>, 'key' | 'columns' | 'sizes'> {
  readonly cond: (e: Expr) => Expr
  /** Values of `more` at an entry. */
  readonly at: (e: Expr) => readonly Expr[]
}

/** Where `starts` hold, or one of `more` changes. */
export function conditionOf(frame: Frame, more: readonly Expr[], starts: Starts | null): Condition {
  const keys = [...more, ...(starts?.keys ?? [])]
  const cut = starts?.cut ?? null
  const t = frame.terms(cut ? [...keys, cut] : keys)
  const changes = (e: Expr): Expr => differs((x) => t.at(x).slice(0, keys.length), e)
  return {
    key: `starts ${cut !== null} ${t.key}`,
    columns: t.columns,
    sizes: t.sizes,
    at: (e) => t.at(e).slice(0, more.length),
    cond: (e) => (cut ? binary('or', changes(e), eq(t.at(e)[keys.length]!, int(1))) : changes(e)),
  }
}

/**
 * One for each axis of a tree whose entries are in order; `null`: it begins none. Under a `sparse_fixed` child a
 * position takes as many child positions as the child is wide (any number where that is still to be measured);
 * without one, it takes one tuple of all coordinates (`storage/levels/segment-runs.ts`).
 */
export function startsOf(frame: Frame, tree: readonly Dimension[]): readonly (Starts | null)[] {
  const out: (Starts | null)[] = tree.map(() => null)
  const down = (depth: number): Expr[] => tree.slice(0, depth).map((d) => d.coordinate)
  // Where another axis begins positions inside of a run as well, places are counted from there.
  const alone = tree.filter((d) => isRepeating(d.axis)).length === 1
  // A child begins new positions inside a run of its parent: the deepest axis first.
  for (let d = tree.length - 1; d >= 0; d--) {
    if (!isRepeating(tree[d]!.axis)) continue
    const child = tree[d + 1]
    if (child?.axis.kind !== 'sparse_fixed') out[d] = { keys: down(tree.length), cut: null }
    else {
      const keys = down(d + 1)
      out[d] = {
        keys,
        cut: child.width === null ? null : cuts(frame, keys, child, out[d + 1] ?? null, alone),
      }
    }
  }
  return out
}

/** 1 where a run of equal keys has had as many child positions as the child is wide; and the place in that width. */
function cuts(
  frame: Frame,
  keys: readonly Expr[],
  child: Dimension,
  inner: Starts | null,
  ranked: boolean,
): Expr {
  const { queue: q, n } = frame
  const c = conditionOf(frame, [...keys, child.coordinate], inner)
  const cut = q.column(n, 'i32', `starts above ${child.axis.name}`)
  const rank = ranked ? q.column(n, 'i32', `ranks on ${child.axis.name}`) : null
  scan(q, {
    ...c,
    key: `cuts ${keys.length} ${ranked} ${c.key}`,
    n,
    op: '+',
    columns: { ...c.columns, x_cut: write(cut), ...(rank ? { x_rank: write(rank) } : {}) },
    sizes: { ...c.sizes, x_width: child.width ?? 1 },
    value: (e) => flag(c.cond(e)),
    reset: (e) => differs((x) => c.at(x).slice(0, keys.length), e),
    body: (e, before, own) => [
      store('x_cut', e, flag(binary('and', eq(own, int(1)), eq(mod(before, variable('x_width')), int(0))))),
      ...(rank ? [store('x_rank', e, mod(add(before, add(own, int(-1))), variable('x_width')))] : []),
    ],
  })
  const name = `@cut ${child.axis.name}`
  frame.set(name, cut)
  if (rank) frame.set(`@rank ${child.axis.name}`, rank)
  return variable(name)
}
