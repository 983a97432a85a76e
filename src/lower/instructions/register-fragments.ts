/** Register fragments: tiles distributed over the lanes of a warp, as the elements that one thread holds. */
import type { Lanes } from '../../analysis/instructions/lane-groups.ts'
import { linear } from '../../analysis/integers/linear.ts'
import { splitBy } from '../../analysis/integers/mixed-radix.ts'
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars, mentions } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Memory } from '../../ir/instructions/instr.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts, someStmt, stmt } from '../../ir/statements/tree.ts'

/** The index of a slot of the tile that contains `index`, in the shape that `tiledShape` gives. */
export function physical(index: readonly Expr[], memory: Memory, slot: Expr): readonly Expr[] {
  const at = index.length - memory.shape.length
  return [...index.slice(0, at), ...memory.shape.map((t, d) => splitBy(index[at + d]!, t).quotient), slot]
}

export const sameElements = (a: Memory, b: Memory): boolean =>
  a.threads === b.threads &&
  a.shape.join() === b.shape.join() &&
  a.element.every((e, d) => keyOf(e) === keyOf(b.element[d]!))

/** Returns true if the loop contains a reduction whose target does not depend on it. */
export const combines = (loop: For): boolean =>
  someStmt(
    loop.body,
    (s) => s.kind === 'reduce' && s.targets.some((t) => t.index.every((e) => !mentions(e, loop.var))),
  )

export function reject(
  s: Stmt,
  why: string,
  hint = 'keep what is read across threads in shared memory',
): never {
  return failAt('schedule/across-lanes', s.span, {
    message: `${why}, and registers belong to a single thread`,
    expected: 'loops over the elements of whole tiles, or an instruction',
    hint,
  })
}

/**
 * Throws `schedule/across-lanes` for elements that are visited in another order than in the tile; names the reversed loop, if one exists.
 */
export function rejectOrder(s: Stmt, used: readonly TileAccess[], loops: ReadonlyMap<string, For>): never {
  const by = used.flatMap(turned).flatMap((v) => loops.get(v) ?? [])[0]
  if (!by)
    return reject(
      s,
      s.kind === 'for'
        ? `${s.nest} does not go through the elements of a tile one by one`
        : 'one element of a tile that threads hold together is used alone',
    )
  const name = `${by.nest}.${by.name}`
  return reject(
    s,
    `${name} goes through elements of a tile in another order than from 0 upwards`,
    `leave out the reverse or serpentine of ${name}`,
  )
}

/** Variables with a negative coefficient or inside a selection, in the index of a tile. */
const turned = ({ index, memory }: TileAccess): readonly string[] =>
  index
    .slice(index.length - memory.shape.length)
    .flatMap((e) => [...linear(e).terms.values()])
    .flatMap(({ term, coefficient: c }) => (c < 0 || term.kind === 'select' ? [...freeVars(term)] : []))

/** An access to elements of a tile. The last dimensions of `index` are those of the tile. */
export interface TileAccess {
  readonly index: readonly Expr[]
  readonly memory: Memory
}

/** Unrolls constant loops over tiles, because registers have no run-time index. */
export function unrolled(body: Body, lanes: Lanes): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for' || s.mode.kind !== 'serial' || s.extent.kind !== 'const') return undefined
      const chooses = accessesOf(s.body).some(
        (a) => lanes.buffers.has(a.buffer) && a.index.some((e) => freeVars(e).has(s.var)),
      )
      return chooses ? stmt<For>({ ...s, mode: { kind: 'unroll', factor: null } }) : undefined
    },
  })
}
