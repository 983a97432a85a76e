/**
 * Invariants of Stage II kernels, checked before and after every step. A violation is a bug of the compiler: `InternalError`
 * with the location.
 */
import { invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars, orderReadsLast, readsMemory, readsSome } from '../ir/expressions/expr-tree.ts'
import { boundIndex, levelOf } from '../ir/instructions/hardware-axes.ts'
import { printExpr, printLoop } from '../ir/print/print-stage2.ts'
import { writesOf } from '../ir/statements/accesses.ts'
import { loopsOf } from '../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/statements/loops.ts'
import { hasReduction, initsOf } from '../ir/statements/reductions.ts'
import { hasBarrier, piecesOf } from '../ir/statements/tree.ts'
import { type ExprType, scalarType } from '../ir/values/dtype.ts'
import { type Check, checkOverParams, type Rules, type Scope, verifyStatements } from './statements.ts'

/** Throws `InternalError` naming the first violated invariant. */
export function verify2(kernel: Kernel2): void {
  const params = new Map<string, ExprType>()
  for (const p of kernel.params) {
    invariant(!params.has(p.name), `${kernel.name}: parameter ${p.name} occurs twice`)
    params.set(p.name, p.kind === 'size' ? 'index' : p.dtype)
  }
  const buffers = new Map<string, Buffer>()
  for (const b of kernel.buffers) {
    invariant(!buffers.has(b.name), `${kernel.name}: buffer ${b.name} occurs twice`)
    invariant(b.scope === 'global', `${b.name}: a kernel's buffers are global, not ${b.scope}`)
    for (const e of b.shape) checkOverParams(e, params, () => `the shape of ${b.name}`)
    buffers.set(b.name, b)
  }
  const boundNames = new Set([...params.keys(), ...buffers.keys()])
  const scope: Scope = { vars: new Map(params), buffers, boundNames }
  verifyStatements(kernel.body, scope, rulesOf(params, buffers))
  for (const { reduce, path } of initsOf(kernel.body)) verifyInit(reduce, path)
}

/** The rules of Stage II. `buffers`: the buffers in scope, which change with the statement. */
const rulesOf = (params: ReadonlyMap<string, ExprType>, buffers: ReadonlyMap<string, Buffer>): Rules => ({
  where: describe,
  target: (t, b, check) =>
    check(t.index.length === b.shape.length, `${t.buffer} has ${b.shape.length} dimensions`),
  node: (e, check, path) => {
    // Cooperative loops distribute their iterations over the threads by thread index.
    const isForbidden =
      e.kind === 'builtin'
        ? !path.some((l) => l.cooperative)
        : e.kind === 'binary' && (e.op === 'quo' || e.op === 'rem')
    check(!isForbidden, () => 'does not occur in Stage II')
    if (e.kind !== 'load' && e.kind !== 'search') return
    const dims = buffers.get(e.buffer)?.shape.length
    const indices = e.kind === 'load' ? e.index.length : 1
    check(indices === dims, () => `${e.buffer} has ${dims} dimensions`)
  },
  statement: (s, check, path) => {
    switch (s.kind) {
      case 'for':
        return verifyFor(s, check, path, params)
      case 'if':
        return check(
          s.absent === undefined || buffers.has(s.absent),
          `no buffer ${s.absent} to lose writes to`,
        )
      case 'reduce':
        return verifyReduce(s, check, buffers)
      case 'alloc': {
        const { name, fill, dtype } = s.buffer
        return check(Number.isFinite(fill) || dtype.includes('f'), `${name}: fill ${fill}`)
      }
      case 'fill':
        check(path.length === 0, `fill ${s.buffer} stands inside of a loop`)
        return check(buffers.has(s.buffer), `fill ${s.buffer}: no such buffer`)
      case 'instr':
        // Only commits of and waits for asynchronous instructions.
        return check(
          piecesOf(s).every((p) => p.kind === 'value' || p.mode === 'meet'),
          'operands come with Stage III',
        )
      case 'let':
      case 'vector_load':
      case 'vector_store':
        return check(false, `${s.kind} does not occur in Stage II`)
      // The cursor of a continued pipeline, a `while` loop, skips iterations without rounds.
      default:
    }
  },
})

function verifyFor(s: For, check: Check, path: readonly For[], params: ReadonlyMap<string, ExprType>): void {
  for (const g of s.guards) {
    check(g.dtype === 'bool', () => `guard ${printExpr(g)} is ${g.dtype}`)
    const belongsHere = freeVars(g).has(s.var) || path.every((l) => !freeVars(g).has(l.var))
    check(belongsHere, () => `guard ${printExpr(g)} belongs to a loop further out`)
  }
  check(orderReadsLast(s.guards) === s.guards, 'a guard reads memory before bounds are tested')
  // Splitting the loop repeats a guard, so its value must not change during the loop.
  if (s.guards.some(readsMemory)) {
    const written = writesOf(s.body)
    const changed = s.guards.find((g) => readsSome(g, written))
    check(!changed, () => `guard ${printExpr(changed!)} reads what the loop writes`)
  }
  const { mode } = s
  if (mode.kind === 'bind') {
    const isTaken = path.some((l) => l.mode.kind === 'bind' && l.mode.to === mode.to)
    check(!isTaken, `${mode.to} is bound twice on this path`)
    if (levelOf(mode.to) === 'thread')
      check(s.extent.kind === 'const', 'a thread axis needs a constant extent')
    else {
      checkOverParams(s.extent, params, () => printLoop(s))
      check(
        path.every((l) => boundIndex(l, 'block') !== undefined),
        'a block axis stands outermost',
      )
      for (const l of path) check(l.body.length === 1, 'statements beside a block-bound loop')
    }
  }
  if (mode.kind === 'unroll' && mode.factor === null)
    check(s.extent.kind === 'const', 'a loop that is unrolled whole needs a constant extent')
  if (mode.kind === 'vectorize') {
    check(s.extent.kind === 'const' && [2, 4, 8].includes(s.extent.value), 'a vector has 2, 4 or 8 lanes')
    check(!hasReduction(s), 'a reduction loop cannot be a vector')
    check(
      loopsOf(s.body).every((l) => l.mode.kind === 'bind') && !hasBarrier(s.body),
      'a vector loop is innermost of those that one thread runs',
    )
  }
}

function verifyReduce(s: Reduce, check: Check, buffers: ReadonlyMap<string, Buffer>): void {
  const n = s.reducer.fields.length
  check(s.targets.length === n && s.values.length === n, `the reducer has ${n} components`)
  if (s.atomic) {
    check(n === 1, 'an atomic update has one element')
    check(buffers.get(s.targets[0]!.buffer)?.scope !== 'register', 'registers need no atomics')
  }
  for (const t of s.targets)
    check(buffers.get(t.buffer)?.dtype === scalarType(t.dtype), `${t.buffer} is not ${t.dtype}`)
}

/** Checks that the elements of an initialisation, which runs before the outermost reduction loop, do not depend on one. */
function verifyInit(s: Reduce, path: readonly For[]): void {
  const outermost = path.findIndex((l) => l.reduce)
  if (outermost < 0) return
  const inner = path.slice(outermost)
  const reductions = new Set(inner.filter((l) => l.reduce).map((l) => l.var))
  const check = (e: Expr, subject: () => string): void => {
    for (const v of freeVars(e))
      invariant(
        !reductions.has(v),
        () => `${describe(s)}: initialised before loop ${v}, but ${subject()} depends on ${v}`,
      )
  }
  for (const t of s.targets) for (const e of t.index) check(e, () => `its element ${printExpr(t)}`)
  for (const l of inner) {
    const isUsed = !l.reduce && s.targets.some((t) => t.index.some((e) => freeVars(e).has(l.var)))
    if (isUsed) check(l.extent, () => `the extent of ${l.var}`)
  }
}

function describe(s: Stmt): string {
  switch (s.kind) {
    case 'for':
      return printLoop(s)
    case 'store':
      return `store to ${s.buffer}`
    case 'reduce':
      return `reduction into ${s.targets.map((t) => t.buffer).join(', ')}`
    default:
      return s.kind
  }
}
