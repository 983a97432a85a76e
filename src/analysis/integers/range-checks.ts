/**
 * Overflow checks by range analysis: the extents, indices and conditions that a plan computes as type `index`, with
 * their greatest and least values as expressions over sizes. Kernels count and address in i32 and cannot detect
 * wrap-around; the host evaluates the checks before a run.
 * Arithmetic on data and on values (type i32) wraps, as in the reference. Expressions of type `index` that lead to an
 * iteration or to an element must be exact; otherwise the sizes are rejected.
 */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { capacitiesOf } from '../../ir/coordinates/runtime-lists.ts'
import { type Expr, THREAD_AXES, variable } from '../../ir/expressions/expr.ts'
import { children, freeVars, substitute } from '../../ir/expressions/expr-tree.ts'
import type { SizeExpr } from '../../ir/expressions/size-expressions.ts'
import { memoize } from '../../ir/memoize.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { targetsOf } from '../../ir/statements/accesses.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Kernel3, Launch, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf } from '../../ir/statements/tree.ts'
import { type Over, overOf, rangesIn, type Scope, scopeOf } from './expression-ranges.ts'
import { constantEnd, type End } from './symbolic-ends.ts'
import { type SymbolicInterval, symbolic } from './symbolic-interval.ts'

/** Sizes are rejected if all of `when` are positive and an end is out of range. */
export interface RangeCheck {
  readonly launch: string
  readonly when?: readonly SizeExpr[]
  readonly least?: SizeExpr
  readonly most?: SizeExpr
  /** The value has 32 bits for any width of the type `index`. */
  readonly word?: boolean
  /** For messages: what the expression is, such as `an index of C`, and the expression over parameters and loops. */
  readonly what: string
  /** The expression is a number of iterations or of blocks. */
  readonly counts?: boolean
  readonly text: string
  /** Names in the expression. */
  readonly names: readonly string[]
  readonly span?: Span | undefined
}

/** The role of an expression. */
interface Role {
  readonly what: string
  readonly isCount?: true
  readonly span?: Span | undefined
}

const CONDITION: Role = { what: 'an expression' }
const OPERAND: Role = { what: 'an operand of an instruction' }
const indexOf = (buffer: string): Role => ({ what: `an index of ${buffer}` })

/** Longer expressions are cut in messages. */
const LONGEST = 160

/** Returns the checks of a plan, in the order of its statements. */
export const rangeChecks = memoize((plan: Kernel3): readonly RangeCheck[] => {
  const found = new Map<string, RangeCheck>()
  const add = (launch: string, when: readonly End[], of: Role, { expr, lo, hi, isWord }: Over): void => {
    // The greatest of several expressions that differ by a constant (an unrolled loop) decides.
    const [base, constant] = hi ? withoutConstant(hi.expr) : [null, 0]
    const key = [...when.map((e) => e.key), of.what, lo?.key, JSON.stringify(base), isWord].join()
    const known = found.get(key)?.most
    if (found.has(key) && (known === undefined || withoutConstant(known)[1] >= constant)) return
    const text = printExpr(expr)
    const span = expr.span ?? of.span
    found.set(key, {
      launch,
      ...(when.length > 0 && { when: when.map((e) => e.expr) }),
      ...(lo && { least: lo.expr }),
      ...(hi && { most: hi.expr }),
      ...(isWord && { word: true }),
      what: of.what,
      ...(of.isCount && { counts: true }),
      text: text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text,
      names: [...freeVars(expr)],
      ...(span && { span }),
    })
  }
  const counted = [
    // The host compares the capacity with counts of a run, so it must have the same value on devices.
    ...capacitiesOf(plan).map((c) => ({
      what: `the room for ${c.part.axis}`,
      expr: c.capacity,
      span: c.lists.span,
    })),
    // Loops visit all slots of a listed block, also beyond the end of the tensor, so the number of slots must fit.
    ...(plan.runtimeLists ?? []).flatMap(({ tensor, parts, span }) =>
      parts.map(({ slots: expr }) => ({
        what: `how many elements of ${tensor} each listed coordinate has`,
        expr,
        span,
      })),
    ),
  ]
  for (const { expr, ...of } of counted)
    for (const over of rangesIn(plan.params, plan.buffers).of(expr, scopeOf()).overs)
      add(plan.name, [], of, { ...over, isWord: true })
  for (const step of plan.steps)
    if (step.kind === 'launch') walkLaunch(plan, step, (when, of, over) => add(step.name, when, of, over))
  return [...found.values()]
})

/** The parts of a sum with a constant. */
const withoutConstant = (e: SizeExpr): readonly [rest: SizeExpr, constant: number] =>
  Array.isArray(e) && e[0] === 'add' && typeof e[2] === 'number' ? [e[1], e[2]] : [e, 0]

function walkLaunch(
  plan: Kernel3,
  launch: Launch,
  add: (when: readonly End[], of: Role, over: Over) => void,
) {
  /** The users' names of loops. */
  const named = new Map<string, Expr>()
  /** Numbers that must be positive for the current statements to run. */
  let when: readonly End[] = []
  const ranges = rangesIn(plan.params, plan.buffers)
  const buffers = [...plan.buffers, ...allocations(launch.body).values()]
  /** Index arrays, whose elements are i32 for any width of the type `index`. */
  const arrays = new Set(
    buffers.filter((b) => b.role === 'index' && b.scope !== 'register').map((b) => b.name),
  )
  /** Walks statements that run only if these numbers are positive. */
  const under = (numbers: readonly End[], walk: () => void): void => {
    if (numbers.some((n) => n.hi <= 0)) return
    const outer = when
    when = [...outer, ...numbers.filter((n) => n.lo <= 0 && !outer.some((x) => x.key === n.key))]
    walk()
    when = outer
  }
  const body = (body: Body, scope: Scope): void => {
    for (const s of body) statement(s, scope)
  }
  const statement = (s: Stmt, scope: Scope): void => {
    switch (s.kind) {
      // The range of a `let` is computed where its name is used: a value before a condition may matter only under the
      // condition.
      case 'let':
        checkValue(s.value, scope)
        ranges.name(scope, s.name, s.value)
        return
      case 'for': {
        const loop: Role = { what: `the extent of loop ${s.name}`, isCount: true, span: s.span }
        const extent = exact(s.extent, scope, loop)
        ranges.iterate(scope, s.var, extent)
        if (s.name !== s.var) named.set(s.var, variable(s.name))
        under([extent.hi], () => body(s.body, scope))
        return
      }
      case 'if':
        checkValue(s.cond, scope, true)
        under([ranges.of(s.cond, scope).hi], () => body(s.then, ranges.where(s.cond, scope)))
        body(s.else, scope)
        return
      case 'alloc':
        if (s.buffer.scope === 'register' && s.buffer.role === 'index')
          ranges.hold(scope, s.buffer.name, s.buffer.below)
        for (const e of s.buffer.shape) checkValue(e, scope)
        return
      case 'store':
        for (const e of s.index) exact(e, scope, indexOf(s.buffer))
        checkValue(s.value, scope)
        if (arrays.has(s.buffer)) word(s.value, scope, indexOf(s.buffer))
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind === 'value') {
            checkValue(p.value, scope)
            word(p.value, scope, OPERAND)
          } else for (const e of p.index) exact(e, scope, indexOf(p.buffer))
        return
      default:
        for (const e of [...targetsOf(s), ...exprsOf(s)]) checkValue(e as Expr, scope)
    }
    for (const b of bodiesOf(s)) body(b, scope)
  }
  /** Returns the range of an expression that must be exact, and adds its checks. */
  const exact = (e: Expr, scope: Scope, of: Role): SymbolicInterval => {
    const range = ranges.of(e, scope)
    check(of, range.overs)
    return range
  }
  /** Adds the check that 32 bits hold a value. */
  const word = (e: Expr, scope: Scope, of: Role): void => {
    if (e.dtype !== 'index') return
    const over = overOf(e, exact(e, scope, of))
    if (over) check(of, [{ ...over, isWord: true }])
  }
  const check = (of: Role, overs: readonly Over[]): void => {
    for (const over of overs) add(when, of, { ...over, expr: written(over.expr) })
  }
  /** Returns the expression without names of the launch. */
  const written = (e: Expr): Expr => {
    let out = e
    for (;;) {
      const next = substitute(out, ranges.lets)
      if (next === out || isLong(next)) break
      out = next
    }
    return substitute(out, named)
  }
  /** Checks a value: accesses in it must be exact, and so must conditions that are not in the text of the kernel. */
  const checkValue = (e: Expr, scope: Scope, condition = false): void => {
    switch (e.kind) {
      case 'var': {
        const value = condition ? ranges.lets.get(e.name) : undefined
        if (!value || scope.seen.has(e.name)) return
        scope.seen.add(e.name)
        checkValue(value, scope, true)
        return
      }
      case 'load':
      case 'search':
        for (const x of children(e)) exact(x, scope, indexOf(e.buffer))
        return
      case 'select':
        checkValue(e.cond, scope, true)
        under([ranges.of(e.cond, scope).hi], () => checkValue(e.then, ranges.where(e.cond, scope)))
        checkValue(e.else, scope)
        return
      case 'binary':
        if (e.op === 'and') {
          checkValue(e.a, scope, condition)
          checkValue(e.b, ranges.where(e.a, scope), condition)
          return
        }
        if (condition && e.dtype === 'bool' && e.op !== 'or')
          for (const x of [e.a, e.b]) exact(x, scope, CONDITION)
    }
    for (const x of children(e)) checkValue(x, scope, condition && e.dtype === 'bool')
  }
  const scope = scopeOf()
  const blocks = launch.grid.map((e, k) =>
    exact(e, scope, { what: `the number of blocks on ${THREAD_AXES[k]!}`, isCount: true }),
  )
  const threads = launch.block.map((n) => symbolic(constantEnd(n), constantEnd(n)))
  for (const [k, x] of [...blocks, ...threads].entries()) ranges.iterate(scope, THREAD_AXES[k]!, x)
  under(
    blocks.map((b) => b.hi),
    () => body(launch.body, scope),
  )
}

function isLong(e: Expr): boolean {
  let nodes = 0
  const count = (x: Expr): boolean => ++nodes > 60 || children(x).some(count)
  return count(e)
}
