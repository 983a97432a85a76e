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
import { type Over, overOf, Ranges, type Scope, scopeOf } from './expression-ranges.ts'
import { constantEnd, type End } from './symbolic-ends.ts'
import { type SymbolicInterval, symbolic } from './symbolic-interval.ts'

/** Sizes are rejected if all of `when` are positive and an end is out of range. */
export interface RangeCheck {
  readonly launch: string
  readonly when: readonly SizeExpr[]
  readonly least?: SizeExpr | undefined
  readonly most?: SizeExpr | undefined
  /** The value has 32 bits for any width of the type `index`. */
  readonly isWord: boolean
  /** For messages: what the expression is, such as `an index of C`, and the expression over parameters and loops. */
  readonly what: string
  /** The expression is a number of iterations or of blocks. */
  readonly isCount: boolean
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

/**
 * The greatest value of a 64-bit `index`: hosts and JavaScript compute these in doubles. No device has memory for more
 * elements.
 */
export const WIDEST = 2 ** 53 - 1

/** Returns the checks of a plan, in the order of its statements. */
export const rangeChecks = memoize((plan: Kernel3): readonly RangeCheck[] => {
  const found = new Map<string, RangeCheck>()
  const add = (launch: string, when: readonly End[], of: Role, { expr, lo, hi, isWord }: Over): void => {
    const key = [...when, of.what, lo, hi, isWord].map((x) => (typeof x === 'object' ? x.key : x)).join()
    if (found.has(key)) return
    const text = printExpr(expr)
    const span = expr.span ?? of.span
    found.set(key, {
      launch,
      when: when.map((e) => e.expr),
      least: lo?.expr,
      most: hi?.expr,
      isWord: isWord === true,
      what: of.what,
      isCount: of.isCount === true,
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
    for (const over of new Ranges(plan.params, plan.buffers).of(expr, scopeOf()).overs)
      add(plan.name, [], of, { ...over, isWord: true })
  for (const step of plan.steps)
    if (step.kind === 'launch') new Walk(plan, step, (when, of, over) => add(step.name, when, of, over)).run()
  return [...found.values()]
})

class Walk {
  readonly #ranges: Ranges
  /** The users' names of loops. */
  readonly #named = new Map<string, Expr>()

  /** Index arrays, whose elements are i32 for any width of the type `index`. */
  readonly #arrays: ReadonlySet<string>
  /** Numbers that must be positive for the current statements to run. */
  #when: readonly End[] = []

  constructor(
    plan: Kernel3,
    private readonly launch: Launch,
    private readonly add: (when: readonly End[], of: Role, over: Over) => void,
  ) {
    this.#ranges = new Ranges(plan.params, plan.buffers)
    const buffers = [...plan.buffers, ...allocations(launch.body).values()]
    this.#arrays = new Set(
      buffers.filter((b) => b.role === 'index' && b.scope !== 'register').map((b) => b.name),
    )
  }

  run(): void {
    const scope = scopeOf()
    const blocks = this.launch.grid.map((e, k) =>
      this.#exact(e, scope, { what: `the number of blocks on ${THREAD_AXES[k]!}`, isCount: true }),
    )
    const threads = this.launch.block.map((n) => symbolic(constantEnd(n), constantEnd(n)))
    for (const [k, x] of [...blocks, ...threads].entries()) this.#ranges.iterate(scope, THREAD_AXES[k]!, x)
    this.#under(
      blocks.map((b) => b.hi),
      () => this.#body(this.launch.body, scope),
    )
  }

  /** Walks statements that run only if these numbers are positive. */
  #under(numbers: readonly End[], walk: () => void): void {
    if (numbers.some((n) => n.hi <= 0)) return
    const outer = this.#when
    this.#when = [...outer, ...numbers.filter((n) => n.lo <= 0 && !outer.some((x) => x.key === n.key))]
    walk()
    this.#when = outer
  }

  #body(body: Body, scope: Scope): void {
    for (const s of body) this.#statement(s, scope)
  }

  #statement(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      // The range of a `let` is computed where its name is used: a value before a condition may matter only under the
      // condition.
      case 'let':
        this.#value(s.value, scope)
        this.#ranges.name(scope, s.name, s.value)
        return
      case 'for': {
        const loop: Role = { what: `the extent of loop ${s.name}`, isCount: true, span: s.span }
        const extent = this.#exact(s.extent, scope, loop)
        this.#ranges.iterate(scope, s.var, extent)
        if (s.name !== s.var) this.#named.set(s.var, variable(s.name))
        this.#under([extent.hi], () => this.#body(s.body, scope))
        return
      }
      case 'if':
        this.#value(s.cond, scope, true)
        this.#under([this.#ranges.of(s.cond, scope).hi], () =>
          this.#body(s.then, this.#ranges.where(s.cond, scope)),
        )
        this.#body(s.else, scope)
        return
      case 'alloc':
        if (s.buffer.scope === 'register' && s.buffer.role === 'index')
          this.#ranges.hold(scope, s.buffer.name, s.buffer.below)
        for (const e of s.buffer.shape) this.#value(e, scope)
        return
      case 'store':
        for (const e of s.index) this.#exact(e, scope, indexOf(s.buffer))
        this.#value(s.value, scope)
        if (this.#arrays.has(s.buffer)) this.#word(s.value, scope, indexOf(s.buffer))
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind === 'value') {
            this.#value(p.value, scope)
            this.#word(p.value, scope, OPERAND)
          } else for (const e of p.index) this.#exact(e, scope, indexOf(p.buffer))
        return
      default:
        for (const e of [...targetsOf(s), ...exprsOf(s)]) this.#value(e as Expr, scope)
    }
    for (const b of bodiesOf(s)) this.#body(b, scope)
  }

  /** Returns the range of an expression that must be exact, and adds its checks. */
  #exact(e: Expr, scope: Scope, of: Role): SymbolicInterval {
    const range = this.#ranges.of(e, scope)
    this.#check(of, range.overs)
    return range
  }

  /** Adds the check that 32 bits hold a value. */
  #word(e: Expr, scope: Scope, of: Role): void {
    if (e.dtype !== 'index') return
    const over = overOf(e, this.#exact(e, scope, of))
    if (over) this.#check(of, [{ ...over, isWord: true }])
  }

  #check(of: Role, overs: readonly Over[]): void {
    for (const over of overs) this.add(this.#when, of, { ...over, expr: this.#written(over.expr) })
  }

  /** Returns the expression without names of the launch. */
  #written(e: Expr): Expr {
    let out = e
    for (;;) {
      const next = substitute(out, this.#ranges.lets)
      if (next === out || isLong(next)) break
      out = next
    }
    return substitute(out, this.#named)
  }

  /** Checks a value: accesses in it must be exact, and so must conditions that are not in the text of the kernel. */
  #value(e: Expr, scope: Scope, condition = false): void {
    switch (e.kind) {
      case 'var': {
        const value = condition ? this.#ranges.lets.get(e.name) : undefined
        if (!value || scope.seen.has(e.name)) return
        scope.seen.add(e.name)
        this.#value(value, scope, true)
        return
      }
      case 'load':
      case 'search':
        for (const x of children(e)) this.#exact(x, scope, indexOf(e.buffer))
        return
      case 'select':
        this.#value(e.cond, scope, true)
        this.#under([this.#ranges.of(e.cond, scope).hi], () =>
          this.#value(e.then, this.#ranges.where(e.cond, scope)),
        )
        this.#value(e.else, scope)
        return
      case 'binary':
        if (e.op === 'and') {
          this.#value(e.a, scope, condition)
          this.#value(e.b, this.#ranges.where(e.a, scope), condition)
          return
        }
        if (condition && e.dtype === 'bool' && e.op !== 'or')
          for (const x of [e.a, e.b]) this.#exact(x, scope, CONDITION)
    }
    for (const x of children(e)) this.#value(x, scope, condition && e.dtype === 'bool')
  }
}

function isLong(e: Expr): boolean {
  let nodes = 0
  const count = (x: Expr): boolean => ++nodes > 60 || children(x).some(count)
  return count(e)
}
