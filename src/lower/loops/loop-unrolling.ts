/**
 * Loop unrolling, and expansion of vectorised loops into lanes. Invariant reached: no loop has the mode `unroll` or `vectorize`. A
 * constant loop becomes copies of its body. A factor yields a main loop of that many copies, and a remainder loop.
 * Other constant loops over the same register array are unrolled too, because one variable index would move the array out of registers.
 */
import { copiesOf, unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { MAX_UNROLLED } from '../../ir/code-size-budgets.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import {
  add,
  div,
  type Expr,
  int,
  isOne,
  isZero,
  load,
  lt,
  mod,
  mul,
  select,
  variable,
} from '../../ir/expressions/expr.ts'
import { mentions } from '../../ir/expressions/expr-tree.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { bodyAt } from '../../ir/statements/clone-loops.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { define, when } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, someStmt, stmt } from '../../ir/statements/tree.ts'

/** Maximum extent of a loop that is unrolled without a schedule step. */
const LONGEST = 64

export function unrollLoops(body: Body, names: Names): Body {
  const implied = impliedBy(body)
  const registers = allocatedNames(body, 'register')
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for') return undefined
      const once = s.mode.kind === 'serial' && s.guards.length === 0 && isOne(s.extent)
      if (s.mode.kind === 'serial' && !once && !implied.has(s.var)) return undefined
      const factor = s.mode.kind === 'unroll' ? s.mode.factor : null
      if (factor === null) return whole(s, names)
      const chosen = s.mode.kind === 'unroll' && s.mode.predicated
      return chosen ? predicated(s, factor, names, registers) : byFactor(s, factor, names)
    },
  })
}

/** Loops that are unrolled along with others; empty if the result would be too large. */
function impliedBy(body: Body): ReadonlySet<string> {
  const implied = alongside(body)
  const copies = (l: For): number =>
    implied.has(l.var) && l.extent.kind === 'const' ? l.extent.value : copiesOf(l)
  return unrolledSize(body, copies) > MAX_UNROLLED ? new Set() : implied
}

/** Serial loops that index a register array which a fully unrolled loop indexes, transitively. */
function alongside(body: Body): ReadonlySet<string> {
  const registers = allocatedNames(body, 'register')
  const uses = accessesOf(body).filter((a) => registers.has(a.buffer))
  const over = (a: (typeof uses)[number]): readonly For[] =>
    a.path.filter((l) => a.index.some((e) => mentions(e, l.var)))
  const out = new Set<string>()
  for (let previousSize = -1; previousSize < out.size; ) {
    previousSize = out.size
    const isUnrolled = (l: For): boolean => isWhole(l) || out.has(l.var)
    const unrolled = new Set(uses.filter((a) => over(a).some(isUnrolled)).map((a) => a.buffer))
    for (const a of uses)
      for (const l of unrolled.has(a.buffer) ? over(a) : [])
        if (l.mode.kind === 'serial' && l.extent.kind === 'const' && l.extent.value <= LONGEST) out.add(l.var)
  }
  return out
}

const isWhole = (l: For): boolean =>
  l.mode.kind === 'vectorize' || (l.mode.kind === 'unroll' && l.mode.factor === null)

function whole(loop: For, names: Names): Body {
  invariant(
    loop.extent.kind === 'const' && loop.guards.length === 0,
    'only a constant loop without guards unrolls whole',
  )
  return Array.from({ length: loop.extent.value }, (_, k) => bodyAt(loop, int(k), names)).flat()
}

function byFactor(loop: For, factor: number, names: Names): Body {
  const count = int(factor)
  const main = names.fresh(loop.var)
  const rest = names.fresh(loop.var)
  const serial = { kind: 'serial' } as const
  const copies = Array.from({ length: factor }, (_, k) =>
    bodyAt(loop, add(mul(variable(main), count), int(k)), names),
  ).flat()
  const done = mul(div(loop.extent, count), count)
  const loops = [
    stmt<For>({
      ...loop,
      var: main,
      extent: div(loop.extent, count),
      guards: [],
      mode: serial,
      body: copies,
    }),
    stmt<For>({
      ...loop,
      var: rest,
      extent: mod(loop.extent, count),
      guards: [],
      mode: serial,
      body: bodyAt(loop, add(done, variable(rest)), names),
    }),
  ]
  return loops.filter((l) => !isZero(l.extent))
}

/**
 * Unrolls without a remainder loop. An iteration beyond the end reads the elements of the first iteration of its group, and its stores
 * keep the old values. If the body writes memory other than registers, a condition skips the iteration.
 */
function predicated(loop: For, factor: number, names: Names, registers: ReadonlySet<string>): Body {
  const round = names.fresh(loop.var)
  const count = int(factor)
  const first = mul(variable(round), count)
  const copies = Array.from({ length: factor }, (_, k) => {
    if (k === 0) return bodyAt(loop, first, names)
    const at = add(first, int(k))
    const there = lt(at, loop.extent)
    if (!onlyRegisters(loop.body, registers)) return [when(there, bodyAt(loop, at, names))]
    return keeping(bodyAt(loop, select(there, at, first), names), there, names)
  }).flat()
  const extent = div(add(loop.extent, int(factor - 1)), count)
  return [stmt<For>({ ...loop, var: round, extent, guards: [], mode: { kind: 'serial' }, body: copies })]
}

/** Returns true if the body only writes registers that are declared outside. */
function onlyRegisters(body: Body, registers: ReadonlySet<string>): boolean {
  const isPlain = (s: Stmt): boolean => s.kind === 'if' || s.kind === 'let' || s.kind === 'for'
  return !someStmt(body, (s) => !isPlain(s) && !(s.kind === 'store' && registers.has(s.buffer)))
}

/** Makes stores conditional by selection: the value is computed always, and stored only if `there` holds. */
const keeping = (body: Body, there: Expr, names: Names): Body =>
  rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'store') return undefined
      const { dtype } = s.value
      const name = names.fresh('next')
      const kept = select(there, variable(name, dtype), load(s.buffer, s.index, dtype))
      return [define(name, s.value), stmt({ ...s, value: kept })]
    },
  })

/** Demotes a vectorized loop to an unrolled one, because iterations that contain barriers cannot be lanes of a vector. */
export const vectorToUnroll = (l: For): For =>
  l.mode.kind === 'vectorize' ? { ...l, mode: { kind: 'unroll', factor: null } } : l
