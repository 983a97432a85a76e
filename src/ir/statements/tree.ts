/**
 * Walking and rewriting statement trees of Stages II and III. Every rewriter keeps the identity of unchanged nodes, so
 * passes can test `===` for "nothing happened" and share memo tables.
 */
import { invariant, unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, load } from '../expressions/expr.ts'
import { orderReadsLast, rewriteExpr } from '../expressions/expr-tree.ts'
import type { Signals } from '../instructions/instr.ts'
import type { CallPiece, InstrCall } from '../instructions/instr-call.ts'
import { mapSame } from '../lists.ts'
import { enableMemo, memoize } from '../memoize.ts'
import { isWord, scalarType } from '../values/dtype.ts'
import type { For, Kernel2, LoopMode, Stmt } from './loops.ts'

export type Body = readonly Stmt[]

/** The kernel with another body; the kernel itself if the body is unchanged. */
export const withBody = (kernel: Kernel2, body: Body): Kernel2 =>
  body === kernel.body ? kernel : { ...kernel, body }

/**
 * Freezes a statement that a pass just built. Guards of a loop that read memory are moved after those that do not,
 * because bounds must be tested before the reads that they protect.
 */
export function stmt<T extends Stmt>(s: T): T {
  invariant(isTyped(s), () => `a statement ${s.kind} of another type than what it holds`)
  const guards = s.kind === 'for' ? orderReadsLast(s.guards) : undefined
  return Object.freeze(enableMemo(s.kind === 'for' && guards !== s.guards ? { ...s, guards } : s))
}

/** Checks the types of a statement's operands, as far as this is possible without declarations. */
function isTyped(s: Stmt): boolean {
  switch (s.kind) {
    case 'for':
      return isWord(s.extent.dtype) && s.guards.every((g) => g.dtype === 'bool')
    case 'if':
    case 'while':
      return s.cond.dtype === 'bool'
    case 'let':
      return scalarType(s.dtype) === scalarType(s.value.dtype)
    case 'reduce':
      return s.targets.length === s.reducer.fields.length && s.values.length === s.targets.length
    default:
      return true
  }
}

export function bodiesOf(s: Stmt): readonly Body[] {
  switch (s.kind) {
    case 'for':
    case 'while':
      return [s.body]
    case 'if':
      return [s.then, s.else]
    default:
      return NO_BODIES
  }
}

const NO_BODIES: readonly Body[] = Object.freeze([])

/** Rebuilds a statement over new nested bodies, in the order of `bodiesOf`. */
export function withBodies(s: Stmt, bodies: readonly Body[]): Stmt {
  switch (s.kind) {
    case 'for':
      // The loop's head was validated when the statement was built.
      return bodies[0] === s.body ? s : Object.freeze(enableMemo({ ...s, body: bodies[0]! }))
    case 'while':
      return bodies[0] === s.body ? s : stmt({ ...s, body: bodies[0]! })
    case 'if': {
      const then = bodies[0]!
      const otherwise = bodies[1]!
      return then === s.then && otherwise === s.else ? s : stmt({ ...s, then, else: otherwise })
    }
    default:
      return s
  }
}

/** The statement with `f` applied to its nested bodies; `k`: the index of the body in `bodiesOf`. */
export const mapBodies = (s: Stmt, f: (body: Body, k: number) => Body): Stmt =>
  withBodies(s, bodiesOf(s).map(f))

/** The loop with its instruction signalling this barrier. */
export const withSignals = (s: For, signals: Signals | undefined): For =>
  s.mode.kind === 'instr' ? stmt({ ...s, mode: Object.freeze({ ...s.mode, signals }) }) : s

/** The direct expressions of a statement, nested bodies aside; a reduction's targets count by their indices. */
export const exprsOf = memoize((s: Stmt): readonly Expr[] => {
  const out: Expr[] = []
  mapExprs(s, (e) => {
    out.push(e)
    return e
  })
  return out
})

/** Maps the direct expressions of a statement (what `exprsOf` lists). */
export function mapExprs(s: Stmt, f: (e: Expr) => Expr): Stmt {
  switch (s.kind) {
    case 'for': {
      const extent = f(s.extent)
      const guards = mapSame(s.guards, f)
      const mode = mapMode(s.mode, f)
      const same = extent === s.extent && guards === s.guards && mode === s.mode
      return same ? s : stmt({ ...s, extent, guards, mode })
    }
    case 'if':
    case 'while': {
      const cond = f(s.cond)
      return cond === s.cond ? s : stmt({ ...s, cond })
    }
    case 'store': {
      const index = mapSame(s.index, f)
      const value = f(s.value)
      return index === s.index && value === s.value ? s : stmt({ ...s, index, value })
    }
    case 'reduce': {
      const targets = mapSame(s.targets, (t) => {
        const index = mapSame(t.index, f)
        return index === t.index ? t : load(t.buffer, index, t.dtype, t.span)
      })
      const values = mapSame(s.values, f)
      return targets === s.targets && values === s.values ? s : stmt({ ...s, targets, values })
    }
    case 'alloc': {
      const shape = mapSame(s.buffer.shape, f)
      return shape === s.buffer.shape ? s : stmt({ ...s, buffer: Object.freeze({ ...s.buffer, shape }) })
    }
    case 'let':
    case 'fill': {
      const value = f(s.value)
      return value === s.value ? s : stmt({ ...s, value })
    }
    case 'barrier':
    case 'rounds':
      return s
    case 'vector_load': {
      const first = f(s.load)
      invariant(first.kind === 'load', 'a vector is loaded from memory')
      return first === s.load ? s : stmt({ ...s, load: first })
    }
    case 'vector_store': {
      const index = mapSame(s.target.index, f)
      const values = mapSame(s.values, f)
      if (index === s.target.index && values === s.values) return s
      return stmt({ ...s, target: load(s.target.buffer, index, s.target.dtype, s.target.span), values })
    }
    case 'instr':
      return mapPieces(s, (p) => {
        if (p.kind === 'value') {
          const value = f(p.value)
          return value === p.value ? p : Object.freeze({ ...p, value })
        }
        if (p.kind === 'map') return p
        const index = mapSame(p.index, f)
        return index === p.index ? p : Object.freeze({ ...p, index })
      })
    default:
      return unreachable(s)
  }
}

type Piece = Exclude<CallPiece, string>

/** The mode with `f` applied to its expressions. */
function mapMode(mode: LoopMode, f: (e: Expr) => Expr): LoopMode {
  if (mode.kind === 'accumulate' && mode.partition) {
    const search = f(mode.partition.search)
    invariant(search.kind === 'search', 'segments are searched for')
    return search === mode.partition.search ? mode : { ...mode, partition: { ...mode.partition, search } }
  }
  if (mode.kind !== 'instr' || !mode.signals) return mode
  const signals = mapSignals(mode.signals, f)
  return signals === mode.signals ? mode : Object.freeze({ ...mode, signals })
}

function mapSignals(signals: Signals, f: (e: Expr) => Expr): Signals {
  const { multicast } = signals
  const index = mapSame(signals.index, f)
  const turn = multicast && f(multicast.turn)
  if (index === signals.index && turn === multicast?.turn) return signals
  return { ...signals, index, ...(multicast && { multicast: { ...multicast, turn: turn! } }) }
}

/** The pieces other than plain text in an instruction call's code. */
export const piecesOf = memoize((s: InstrCall): readonly Piece[] =>
  s.texts.flatMap((t) => t.pieces.filter((p): p is Piece => typeof p !== 'string')),
)

export function mapPieces(s: InstrCall, f: (p: Piece) => Piece): InstrCall {
  const texts = mapSame(s.texts, (t) => {
    const pieces = mapSame(t.pieces, (p) => (typeof p === 'string' ? p : f(p)))
    return pieces === t.pieces ? t : Object.freeze({ ...t, pieces })
  })
  return texts === s.texts ? s : stmt({ ...s, texts })
}

/** `undefined` means unchanged; a statement may become several or none. */
export interface Rewriter {
  /** Called bottom-up, after the nested bodies and expressions were rewritten. */
  readonly stmt?: (s: Stmt) => Stmt | Body | undefined
  /** Called bottom-up on every expression node; reduction targets are visited by their indices only. */
  readonly expr?: (e: Expr) => Expr | undefined
}

export function rewriteStmts(body: Body, visitor: Rewriter): Body {
  const memo = new Map<Expr, Expr>()
  const onExpr = visitor.expr
  const expr = onExpr ? (e: Expr): Expr => rewriteExpr(e, onExpr, memo) : undefined
  const visit = (list: Body): Body => {
    let out: Stmt[] | undefined
    for (let k = 0; k < list.length; k++) {
      const s = list[k]!
      const outer = expr ? mapExprs(s, expr) : s
      const inner = bodiesOf(outer)
      const rebuilt = inner.length === 0 ? outer : withBodies(outer, inner.map(visit))
      const result = visitor.stmt?.(rebuilt) ?? rebuilt
      if (result !== s && !out) out = list.slice(0, k)
      if (!out) continue
      if (Array.isArray(result)) out.push(...(result as Body))
      else out.push(result as Stmt)
    }
    return out ? Object.freeze(out) : list
  }
  return visit(body)
}

/**
 * Calls `visit` on every statement, outer before inner, with the loops around it; `false` skips the nested statements.
 */
export function walkStmts(
  body: Body,
  visit: (s: Stmt, path: readonly For[]) => unknown,
  path: readonly For[] = [],
): void {
  for (let k = 0; k < body.length; k++) {
    const s = body[k]!
    if (visit(s, path) === false) continue
    // A visitor without a second parameter needs no path.
    if (s.kind === 'for') walkStmts(s.body, visit, visit.length > 1 ? [...path, s] : path)
    else if (s.kind === 'while') walkStmts(s.body, visit, path)
    else if (s.kind === 'if') {
      walkStmts(s.then, visit, path)
      walkStmts(s.else, visit, path)
    }
  }
}

/** The statements of one kind, outer before inner. */
export function stmtsOf<K extends Stmt['kind']>(body: Body, kind: K): readonly Extract<Stmt, { kind: K }>[] {
  const out: Extract<Stmt, { kind: K }>[] = []
  walkStmts(body, (s) => {
    if (s.kind === kind) out.push(s as Extract<Stmt, { kind: K }>)
  })
  return out
}

export const someStmt = (body: Body, test: (s: Stmt) => boolean): boolean =>
  body.some((s) => test(s) || bodiesOf(s).some((b) => someStmt(b, test)))

/** Replaces one statement, found by identity, by the result of `f`. */
export function replaceStmt(body: Body, target: Stmt, f: (s: Stmt) => Stmt | Body): Body {
  let replaced = false
  const visit = (list: Body): Body => {
    for (const [k, s] of list.entries()) {
      if (replaced) break
      if (s === target) {
        replaced = true
        const result = f(s)
        const parts: Body = Array.isArray(result) ? (result as Body) : [result as Stmt]
        return Object.freeze([...list.slice(0, k), ...parts, ...list.slice(k + 1)])
      }
      const bodies = bodiesOf(s)
      const next = bodies.map(visit)
      if (next.some((b, n) => b !== bodies[n]))
        return Object.freeze([...list.slice(0, k), withBodies(s, next), ...list.slice(k + 1)])
    }
    return list
  }
  const out = visit(body)
  invariant(replaced, 'the statement to replace is not in this body')
  return out
}

export const hasBarrier = (body: Body): boolean => someStmt(body, (s) => s.kind === 'barrier')
