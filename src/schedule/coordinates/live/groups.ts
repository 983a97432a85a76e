/**
 * Visited positions of lists that are built at run time. Each loop ends with its list. If the format has a mask and
 * groups are filled up with a repeated coordinate, whole groups are visited. The coordinate is then visited again, so
 * statements that must not count it twice are guarded by the length of the list, like statements under masks of bound
 * data (`masked-statements.ts`).
 */
import { givenBy, isIdentity, writtenIn } from '../../../analysis/sparsity/fill-folding.ts'
import type { Iteration, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  rewriteStmts1,
  walkStmts1,
  writersIn,
} from '../../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../../../ir/expressions/expr.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import type { SplitBuffer } from '../as/tensor-split.ts'
import { fillOf, type Masked, maskedBody } from '../legality/masked-statements.ts'

/** The positions of a list, for rewriting the iterations over them. */
export interface Positions {
  /** The axis over positions. */
  readonly axis: string
  /**
   * Builds the condition that a position is used, not filled up. Each statement needs its own expression, because
   * conditions identify statements.
   */
  readonly held: () => Expr
  /** Temporaries over the part's axes; `order` has these axes in their order. */
  readonly along: ReadonlyMap<string, SplitBuffer>
  readonly order: readonly string[]
}

const visits = (s: Stmt1, { axis }: Positions): s is Iteration =>
  s.kind === 'iterate' && s.iters.some((x) => x.axis === axis)

/** Adds the condition that ends loops after the last listed coordinate. */
export const ended = (body: Body1, p: Positions, only = (_: Stmt1): boolean => true): Body1 =>
  rewriteStmts1(body, (s) => (visits(s, p) && only(s) ? { ...s, where: [p.held(), ...s.where] } : undefined))

/** Returns whether an access reads or writes a temporary at the visited position. */
const isOwn = (t: Load, { along, order }: Positions): boolean => {
  const start = along.get(t.buffer)?.start
  if (start === undefined) return false
  return order.every((name, k) => {
    const e = t.index[start + k]
    return e?.kind === 'var' && e.name === name
  })
}

/**
 * Makes iterations visit whole groups, except iterations that write an element at the listed coordinate: each such
 * element is written once.
 */
export function inGroups(body: Body1, p: Positions): Body1 {
  const visiting = iterationsOf(body).filter((s) => visits(s, p))
  const written = (s: Stmt1): readonly Load[] => writersIn([s]).flatMap((w) => w.targets)
  const scatters = new Set<Stmt1>(
    visiting.filter((s) => written(s).some((t) => !isOwn(t, p) && freeVars(t).has(p.axis))),
  )
  const whole = visiting.filter((s) => !scatters.has(s))
  const clean = cleanIn(body, whole, p)
  const fills = new Map(
    [...clean].map((name) => {
      const { fill, dtype } = p.along.get(name)!.buffer
      return [name, constant(fill, dtype)] as const
    }),
  )
  const known = (l: Load): Expr | undefined => (isOwn(l, p) ? fills.get(l.buffer) : undefined)
  const plans = new Map<Stmt1, Masked>()
  walkStmts1(body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    if (!around.iterations.some((it) => whole.includes(it))) return
    const given = givenBy(writtenIn(s, around), known)
    if (s.kind === 'assign') {
      const restored = new Map(
        given.flatMap(({ value, factors }, k) => {
          const { buffer } = s.targets[k]!
          const fill = fills.get(buffer)
          const isKept = !fill || (factors.length === 0 && isIdentity(value, fill))
          return isKept ? [] : [[k, fillOf(p.along.get(buffer)!.buffer, s.values[k]!)] as const]
        }),
      )
      if (restored.size > 0) plans.set(s, { how: 'restore', held: p.held(), fills: restored })
      return
    }
    const isIdle = given.every((g, k) => g.isIdentity || isOwn(s.targets[k]!, p))
    if (!isIdle) plans.set(s, { how: 'combine', held: p.held() })
  })
  return ended(maskedBody(body, plans), p, (s) => scatters.has(s))
}

/**
 * Returns the temporaries that hold their fill value at unused positions; other temporaries hold arbitrary values
 * there.
 */
function cleanIn(body: Body1, whole: readonly Iteration[], p: Positions): ReadonlySet<string> {
  const out = new Set(p.along.keys())
  walkStmts1(body, (s, { iterations }) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const isRestored = s.kind === 'assign' && iterations.some((it) => whole.includes(it))
    for (const t of s.targets) if (!isRestored) out.delete(t.buffer)
  })
  return out
}
