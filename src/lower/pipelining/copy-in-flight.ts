/**
 * Splitting of copies into shared memory (`start`: loads into registers; `end`: stores from registers), so that arithmetic in between
 * hides the latency of the loads.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int, load, variable } from '../../ir/expressions/expr.ts'
import { boundVarsOf, renameBound, sameStmts } from '../../ir/statements/bindings.ts'
import type { Buffer, For, Stmt, Store } from '../../ir/statements/loops.ts'
import { local } from '../../ir/statements/statement-builders.ts'
import { mapBodies, stmt, stmtsOf, walkStmts } from '../../ir/statements/tree.ts'

/** Maximum number of elements that a thread holds in registers between start and end. */
const MOST_REGISTERS = 64

/**
 * A copy split into `start` and `end`. If the copy cannot be split, `start` is the copy, and `end` and the registers `inFlight` are
 * absent.
 */
export interface SplitCopy {
  readonly start: Stmt
  readonly end?: Stmt
  readonly inFlight?: Buffer
}

/** Splits `copy`. `plain` is the same copy with addresses that do not change until it ends. */
export function splitCopy(copy: Stmt, plain: Stmt, names: Names): SplitCopy {
  const shape = inFlightShape(copy)
  if (!shape) return { start: copy }
  const to = stmtsOf([copy], 'store')[0]!
  const inFlight = local(names.fresh(`${to.buffer}_ahead`), to.value.dtype, shape.map(int))
  const rename = new Map([...boundVarsOf([plain])].map((v) => [v, names.fresh(v)]))
  const start = eachStore(copy, [], (s, at) => stmt({ ...s, buffer: inFlight.name, index: at }))
  const end = eachStore(renameBound([plain], rename)[0]!, [], (s, at) =>
    stmt({ ...s, value: load(inFlight.name, at, inFlight.dtype) }),
  )
  return { start, end: withoutChoice(end), inFlight }
}

/**
 * Returns the extents of the loops around the stores of a copy. `undefined` if the stores have different loops, an instruction copies, or
 * the elements exceed `MOST_REGISTERS`.
 */
function inFlightShape(copy: Stmt): readonly number[] | undefined {
  const shapes = new Set<string>()
  let shape: readonly number[] = []
  let plain = true
  walkStmts([copy], (s, path) => {
    if (s.kind === 'for')
      plain &&= s.extent.kind === 'const' && s.mode.kind !== 'bind' && s.mode.kind !== 'instr'
    else if (s.kind === 'store') {
      shape = path.map((l) => (l.extent.kind === 'const' ? l.extent.value : 0))
      shapes.add(`${s.buffer} ${shape}`)
    } else plain &&= s.kind === 'if'
  })
  const size = shape.reduce((a, b) => a * b, 1)
  return plain && shapes.size === 1 && size > 0 && size <= MOST_REGISTERS ? shape : undefined
}

/** Unrolls the loops of a statement, and replaces each store by `f(store, at)`; `at`: the variables of the loops around it. */
function eachStore(s: Stmt, around: readonly Expr[], f: (s: Store, at: readonly Expr[]) => Store): Stmt {
  if (s.kind === 'store') return f(s, around.length > 0 ? around : [int(0)])
  if (s.kind !== 'for') return mapBodies(s, (b) => b.map((x) => eachStore(x, around, f)))
  const body = s.body.map((x) => eachStore(x, [...around, variable(s.var)], f))
  const mode = s.mode.kind === 'serial' ? ({ kind: 'unroll', factor: null } as const) : s.mode
  return stmt<For>({ ...s, mode, body })
}

/** Replaces an `if` with identical branches by its first branch. */
function withoutChoice(s: Stmt): Stmt {
  if (s.kind === 'if' && s.else.length > 0 && sameStmts(s.then, s.else) && s.then.length === 1)
    return withoutChoice(s.then[0]!)
  return mapBodies(s, (b) => b.map(withoutChoice))
}
