/**
 * Invariants of Stage II kernels, checked before and after every step. A violation is a bug of the compiler: `InternalError`
 * with the location.
 */
import { invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars, orderReadsLast, readsMemory, readsSome } from '../ir/expressions/expr-tree.ts'
import { boundIndex, levelOf } from '../ir/instructions/hardware-axes.ts'
import { printExpr, printLoop } from '../ir/print/print-stage2.ts'
import { isReadOnly, targetsOf, writesOf } from '../ir/statements/accesses.ts'
import { loopsOf } from '../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/statements/loops.ts'
import { hasReduction, initsOf } from '../ir/statements/reductions.ts'
import { exprsOf, hasBarrier, piecesOf } from '../ir/statements/tree.ts'
import { type ExprType, isWord, scalarType } from '../ir/values/dtype.ts'
import { type Check, verifyExpr } from './expression-invariants.ts'

interface Scope {
  readonly vars: ReadonlyMap<string, ExprType>
  readonly buffers: ReadonlyMap<string, Buffer>
  readonly path: readonly For[]
}

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
  const boundNames = new Set<string>([...params.keys(), ...buffers.keys()])
  verifyBody(kernel.body, { vars: params, buffers, path: [] }, { params, boundNames })
  for (const { reduce, path } of initsOf(kernel.body)) verifyInit(reduce, path)
}

interface Context {
  readonly params: ReadonlyMap<string, ExprType>
  /** Every name bound so far: variables and buffers share one namespace. */
  readonly boundNames: Set<string>
}

function verifyBody(body: readonly Stmt[], scope: Scope, cx: Context): void {
  let current = scope
  // Later statements of the body have the same names in scope and more, so a verified node stays valid.
  const verified = new Set<Expr>()
  for (const s of body) {
    const where = () => describe(s)
    for (const e of s.kind === 'for' ? [s.extent] : exprsOf(s))
      verifyExpr(e, current, where, verified, nodeInvariants(current))
    for (const t of targetsOf(s)) {
      const b = current.buffers.get(t.buffer)
      invariant(b, () => `${where()}: no buffer ${t.buffer} here`)
      invariant(
        t.index.length === b.shape.length,
        () => `${where()}: ${t.buffer} has ${b.shape.length} dimensions`,
      )
      invariant(!isReadOnly(b), () => `${where()}: ${t.buffer} is read only`)
    }
    switch (s.kind) {
      case 'for':
        verifyFor(s, current, cx)
        break
      case 'if':
        invariant(s.cond.dtype === 'bool', `${describe(s)}: the condition is ${s.cond.dtype}`)
        if (s.absent !== undefined)
          invariant(current.buffers.has(s.absent), `${describe(s)}: no buffer ${s.absent} to lose writes to`)
        verifyBody(s.then, current, cx)
        verifyBody(s.else, current, cx)
        break
      case 'while':
        // The cursor of a continued pipeline skips iterations without rounds.
        invariant(s.cond.dtype === 'bool', `${describe(s)}: the condition is ${s.cond.dtype}`)
        verifyBody(s.body, current, cx)
        break
      case 'store':
        break
      case 'reduce':
        verifyReduce(s, current)
        break
      case 'alloc': {
        const { name, shape, scope: memoryScope, fill } = s.buffer
        invariant(!cx.boundNames.has(name), `${name} is bound twice`)
        invariant(memoryScope !== 'global', `${name}: a global buffer is declared by the kernel`)
        invariant(
          shape.every((e) => e.kind === 'const' && e.value >= 1),
          `${name}: its shape is not constant`,
        )
        invariant(Number.isFinite(fill) || s.buffer.dtype.includes('f'), `${name}: fill ${fill}`)
        cx.boundNames.add(name)
        current = { ...current, buffers: new Map([...current.buffers, [name, s.buffer]]) }
        break
      }
      case 'fill':
        invariant(current.path.length === 0, `fill ${s.buffer} stands inside of a loop`)
        invariant(current.buffers.has(s.buffer), `fill ${s.buffer}: no such buffer`)
        break
      case 'instr':
        // Only commits of and waits for asynchronous instructions.
        for (const p of piecesOf(s))
          invariant(
            p.kind === 'value' || (p.mode === 'meet' && current.buffers.has(p.buffer)),
            `${describe(s)}: operands come with Stage III`,
          )
        break
      case 'barrier':
        break
      default:
        invariant(false, `${s.kind} does not occur in Stage II`)
    }
  }
}

function verifyFor(s: For, scope: Scope, cx: Context): void {
  const where = () => printLoop(s)
  const check = (holds: boolean, problem: string): void => invariant(holds, () => `${where()}: ${problem}`)
  check(!cx.boundNames.has(s.var), `${s.var} is bound twice`)
  cx.boundNames.add(s.var)
  check(isWord(s.extent.dtype), `the extent is ${s.extent.dtype}`)
  const inner: Scope = {
    ...scope,
    vars: new Map([...scope.vars, [s.var, 'index']]),
    path: [...scope.path, s],
  }
  const verified = new Set<Expr>()
  for (const g of s.guards) {
    verifyExpr(g, inner, where, verified, nodeInvariants(inner))
    invariant(g.dtype === 'bool', () => `${where()}: guard ${printExpr(g)} is ${g.dtype}`)
    const belongsHere = freeVars(g).has(s.var) || scope.path.every((l) => !freeVars(g).has(l.var))
    invariant(belongsHere, () => `${where()}: guard ${printExpr(g)} belongs to a loop further out`)
  }
  check(orderReadsLast(s.guards) === s.guards, 'a guard reads memory before bounds are tested')
  // Splitting the loop repeats a guard, so its value must not change during the loop.
  if (s.guards.some(readsMemory)) {
    const written = writesOf(s.body)
    const changed = s.guards.find((g) => readsSome(g, written))
    invariant(!changed, () => `${where()}: guard ${printExpr(changed!)} reads what the loop writes`)
  }
  const { mode } = s
  if (mode.kind === 'bind') {
    for (const l of scope.path)
      check(l.mode.kind !== 'bind' || l.mode.to !== mode.to, `${mode.to} is bound twice on this path`)
    if (levelOf(mode.to) === 'thread')
      check(s.extent.kind === 'const', 'a thread axis needs a constant extent')
    else {
      checkOverParams(s.extent, cx.params, where)
      check(
        scope.path.every((l) => isBlockLoop(l)),
        'a block axis stands outermost',
      )
      for (const l of scope.path) check(l.body.length === 1, 'statements beside a block-bound loop')
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
  verifyBody(s.body, inner, cx)
}

const isBlockLoop = (l: For): boolean => boundIndex(l, 'block') !== undefined

function verifyReduce(s: Reduce, scope: Scope): void {
  const check = (holds: boolean, problem: string): void =>
    invariant(holds, () => `${describe(s)}: ${problem}`)
  const n = s.reducer.fields.length
  check(s.targets.length === n && s.values.length === n, `the reducer has ${n} components`)
  if (s.atomic) {
    check(n === 1, 'an atomic update has one element')
    check(scope.buffers.get(s.targets[0]!.buffer)?.scope !== 'register', 'registers need no atomics')
  }
  for (const t of s.targets)
    check(scope.buffers.get(t.buffer)?.dtype === scalarType(t.dtype), `${t.buffer} is not ${t.dtype}`)
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

/** Additional invariants of expression nodes in Stage II. */
const nodeInvariants =
  ({ path, buffers }: Scope) =>
  (e: Expr, check: Check): void => {
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
  }

function checkOverParams(e: Expr, params: ReadonlyMap<string, ExprType>, where: () => string): void {
  for (const v of freeVars(e))
    invariant(params.has(v), () => `${where()}: ${printExpr(e)} depends on ${v}, not only on parameters`)
  invariant(!readsMemory(e), () => `${where()}: ${printExpr(e)} reads memory`)
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
