/**
 * Invariants of Stage II kernels, checked before and after every step. A violation is a bug of the compiler: `InternalError`
 * with the location.
 */

import { invariant } from '../ast/diagnostic.ts'
import { isReadOnly, targetsOf, writesOf } from '../ir/accesses.ts'
import { loopsOf } from '../ir/definitions.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import { freeVars, orderReadsLast, readsMemory, readsSome } from '../ir/expr-tree.ts'
import { boundIndex, levelOf } from '../ir/hardware-axes.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { printExpr, printLoop } from '../ir/print-stage2.ts'
import { hasReduction, initsOf } from '../ir/reductions.ts'
import { exprsOf, hasBarrier, piecesOf } from '../ir/tree.ts'
import { type Holds, verifyExpr } from './expression-invariants.ts'

interface Scope {
  readonly vars: ReadonlyMap<string, Dtype>
  readonly buffers: ReadonlyMap<string, Buffer>
  readonly path: readonly For[]
}

/** Throws `InternalError` naming the first violated invariant. */
export function verify2(kernel: Kernel2): void {
  const params = new Map<string, Dtype>()
  for (const p of kernel.params) {
    invariant(!params.has(p.name), `${kernel.name}: parameter ${p.name} occurs twice`)
    params.set(p.name, p.kind === 'size' ? 'i32' : p.dtype)
  }
  const buffers = new Map<string, Buffer>()
  for (const b of kernel.buffers) {
    invariant(!buffers.has(b.name), `${kernel.name}: buffer ${b.name} occurs twice`)
    invariant(b.scope === 'global', `${b.name}: a kernel's buffers are global, not ${b.scope}`)
    for (const e of b.shape) overParams(e, params, () => `the shape of ${b.name}`)
    buffers.set(b.name, b)
  }
  const seen = new Set<string>([...params.keys(), ...buffers.keys()])
  verifyBody(kernel.body, { vars: params, buffers, path: [] }, { params, seen })
  for (const { reduce, path } of initsOf(kernel.body)) verifyInit(reduce, path)
}

interface Context {
  readonly params: ReadonlyMap<string, Dtype>
  /** Every name bound so far: variables and buffers share one namespace. */
  readonly seen: Set<string>
}

function verifyBody(body: readonly Stmt[], scope: Scope, cx: Context): void {
  let here = scope
  // What holds of a node here holds for the rest of the body, where only more is bound.
  const known = new Set<Expr>()
  for (const s of body) {
    const what = () => describe(s)
    for (const e of s.kind === 'for' ? [s.extent] : exprsOf(s))
      verifyExpr(e, here, what, known, nodesOf(here))
    for (const t of targetsOf(s)) {
      const b = here.buffers.get(t.buffer)
      invariant(b, () => `${what()}: no buffer ${t.buffer} here`)
      invariant(
        t.index.length === b.shape.length,
        () => `${what()}: ${t.buffer} has ${b.shape.length} dimensions`,
      )
      invariant(!isReadOnly(b), () => `${what()}: ${t.buffer} is read only`)
    }
    switch (s.kind) {
      case 'for':
        verifyFor(s, here, cx)
        break
      case 'if':
        invariant(s.cond.dtype === 'bool', `${describe(s)}: the condition is ${s.cond.dtype}`)
        if (s.absent !== undefined)
          invariant(here.buffers.has(s.absent), `${describe(s)}: no buffer ${s.absent} to lose writes to`)
        verifyBody(s.then, here, cx)
        verifyBody(s.else, here, cx)
        break
      case 'while':
        // Rounds of a pipeline that goes on, found.
        invariant(s.cond.dtype === 'bool', `${describe(s)}: the condition is ${s.cond.dtype}`)
        verifyBody(s.body, here, cx)
        break
      case 'store':
        break
      case 'reduce':
        verifyReduce(s, here)
        break
      case 'alloc': {
        const { name, shape, scope: where, fill } = s.buffer
        invariant(!cx.seen.has(name), `${name} is bound twice`)
        invariant(where !== 'global', `${name}: a global buffer is declared by the kernel`)
        invariant(
          shape.every((e) => e.kind === 'const' && e.value >= 1),
          `${name}: its shape is not constant`,
        )
        invariant(Number.isFinite(fill) || s.buffer.dtype.includes('f'), `${name}: fill ${fill}`)
        cx.seen.add(name)
        here = { ...here, buffers: new Map([...here.buffers, [name, s.buffer]]) }
        break
      }
      case 'fill':
        invariant(here.path.length === 0, `fill ${s.buffer} stands inside of a loop`)
        invariant(here.buffers.has(s.buffer), `fill ${s.buffer}: no such buffer`)
        break
      case 'instr':
        // Asynchronous instructions, ended and waited for.
        for (const p of piecesOf(s))
          invariant(
            p.kind === 'value' || (p.mode === 'meet' && here.buffers.has(p.buffer)),
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
  const what = () => printLoop(s)
  invariant(!cx.seen.has(s.var), () => `${what()}: ${s.var} is bound twice`)
  cx.seen.add(s.var)
  invariant(s.extent.dtype === 'i32', () => `${what()}: the extent is ${s.extent.dtype}`)
  const inside: Scope = {
    ...scope,
    vars: new Map([...scope.vars, [s.var, 'i32']]),
    path: [...scope.path, s],
  }
  const known = new Set<Expr>()
  for (const g of s.guards) {
    verifyExpr(g, inside, what, known, nodesOf(inside))
    invariant(g.dtype === 'bool', () => `${what()}: guard ${printExpr(g)} is ${g.dtype}`)
    const own = freeVars(g).has(s.var) || scope.path.every((l) => !freeVars(g).has(l.var))
    invariant(own, () => `${what()}: guard ${printExpr(g)} belongs to a loop further out`)
  }
  invariant(
    orderReadsLast(s.guards) === s.guards,
    () => `${what()}: a guard reads memory before bounds are tested`,
  )
  // It is asked again wherever the loop is taken apart: the answer may not change by then.
  if (s.guards.some(readsMemory)) {
    const written = writesOf(s.body)
    const changed = s.guards.find((g) => readsSome(g, written))
    invariant(!changed, () => `${what()}: guard ${printExpr(changed!)} reads what the loop writes`)
  }
  const { mode } = s
  if (mode.kind === 'bind') {
    for (const l of scope.path)
      invariant(
        l.mode.kind !== 'bind' || l.mode.to !== mode.to,
        () => `${what()}: ${mode.to} is bound twice on this path`,
      )
    if (levelOf(mode.to) === 'thread')
      invariant(s.extent.kind === 'const', () => `${what()}: a thread axis needs a constant extent`)
    else {
      overParams(s.extent, cx.params, what)
      invariant(
        scope.path.every((l) => isBlock(l)),
        () => `${what()}: a block axis stands outermost`,
      )
      for (const l of scope.path)
        invariant(l.body.length === 1, () => `${what()}: statements beside a block-bound loop`)
    }
  }
  if (mode.kind === 'unroll' && mode.factor === null)
    invariant(
      s.extent.kind === 'const',
      () => `${what()}: a loop that is unrolled whole needs a constant extent`,
    )
  if (mode.kind === 'vectorize') {
    invariant(
      s.extent.kind === 'const' && [2, 4, 8].includes(s.extent.value),
      () => `${what()}: a vector has 2, 4 or 8 lanes`,
    )
    invariant(!hasReduction(s), () => `${what()}: a reduction loop cannot be a vector`)
    invariant(
      loopsOf(s.body).every((l) => l.mode.kind === 'bind') && !hasBarrier(s.body),
      () => `${what()}: a vector loop is innermost of those that one thread runs`,
    )
  }
  verifyBody(s.body, inside, cx)
}

const isBlock = (l: For): boolean => boundIndex(l, 'block') !== undefined

function verifyReduce(s: Reduce, scope: Scope): void {
  const what = describe(s)
  const n = s.reducer.fields.length
  invariant(s.targets.length === n && s.values.length === n, `${what}: the reducer has ${n} components`)
  if (s.atomic) {
    invariant(n === 1, `${what}: an atomic update has one element`)
    invariant(
      scope.buffers.get(s.targets[0]!.buffer)?.scope !== 'register',
      `${what}: registers need no atomics`,
    )
  }
  for (const t of s.targets)
    invariant(scope.buffers.get(t.buffer)?.dtype === t.dtype, `${what}: ${t.buffer} is not ${t.dtype}`)
}

/** Checks that an initialisation precedes the outermost reduction loop, so that its elements do not depend on one. */
function verifyInit(s: Reduce, path: readonly For[]): void {
  const at = path.findIndex((l) => l.reduce)
  if (at < 0) return
  const inside = path.slice(at)
  const reductions = new Set(inside.filter((l) => l.reduce).map((l) => l.var))
  const check = (e: Expr, of: () => string): void => {
    for (const v of freeVars(e))
      invariant(
        !reductions.has(v),
        () => `${describe(s)}: initialised before loop ${v}, but ${of()} depends on ${v}`,
      )
  }
  for (const t of s.targets) for (const e of t.index) check(e, () => `its element ${printExpr(t)}`)
  for (const l of inside) {
    const used = !l.reduce && s.targets.some((t) => t.index.some((e) => freeVars(e).has(l.var)))
    if (used) check(l.extent, () => `the extent of ${l.var}`)
  }
}

/** Additional invariants of expression nodes in Stage II. */
const nodesOf =
  ({ path, buffers }: Scope) =>
  (e: Expr, holds: Holds): void => {
    // Threads deal out the rounds of a cooperative loop by their own indices.
    const absent =
      e.kind === 'builtin'
        ? !path.some((l) => l.cooperative)
        : e.kind === 'binary' && (e.op === 'quo' || e.op === 'rem')
    holds(!absent, () => 'does not occur in Stage II')
    if (e.kind !== 'load' && e.kind !== 'search') return
    const dims = buffers.get(e.buffer)?.shape.length
    const wanted = e.kind === 'load' ? e.index.length : 1
    holds(wanted === dims, () => `${e.buffer} has ${dims} dimensions`)
  }

function overParams(e: Expr, params: ReadonlyMap<string, Dtype>, what: () => string): void {
  for (const v of freeVars(e))
    invariant(params.has(v), () => `${what()}: ${printExpr(e)} depends on ${v}, not only on parameters`)
  invariant(!readsMemory(e), () => `${what()}: ${printExpr(e)} reads memory`)
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
