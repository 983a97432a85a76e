/** Walking and rewriting statements of Stage I. Every rewriter keeps the identity of unchanged nodes. */

import { invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, type Load, load } from '../expressions/expr.ts'
import { freeVars, rewriteExpr, substitute, walkExpr } from '../expressions/expr-tree.ts'
import { mapSame } from '../lists.ts'
import { memoize } from '../memoize.ts'
import { isBuiltinReducer, type Monoid } from '../values/monoid.ts'
import type { Axis } from './axis.ts'
import type { Access, Assign, If1, Iteration, Kernel1, Let1, Reduce1, Stmt1 } from './stage1.ts'

export type Body1 = readonly Stmt1[]

function bodiesOf1(s: Stmt1): readonly Body1[] {
  switch (s.kind) {
    case 'iterate':
      return [s.body]
    case 'if':
      return [s.then, s.else]
    default:
      return []
  }
}

export function mapBodies1(s: Stmt1, f: (body: Body1) => Body1): Stmt1 {
  switch (s.kind) {
    case 'iterate': {
      const body = f(s.body)
      return body === s.body ? s : { ...s, body }
    }
    case 'if': {
      const [then, otherwise] = [f(s.then), f(s.else)]
      return then === s.then && otherwise === s.else ? s : { ...s, then, else: otherwise }
    }
    default:
      return s
  }
}

/** The expressions that a statement itself evaluates, without nested bodies; of targets, their indices. */
export function exprsOf1(s: Stmt1): readonly Expr[] {
  switch (s.kind) {
    case 'iterate':
      return s.where
    case 'if':
      return [s.cond]
    case 'let':
      return [s.value]
    case 'rounds':
      return s.flag === undefined ? [] : [load(s.flag, [], 'i32')]
    default:
      return [...s.values, ...s.targets.flatMap((t) => t.index)]
  }
}

/** Maps the direct expressions of a statement, and its targets as a whole. */
export function mapExprs1(s: Stmt1, f: (e: Expr) => Expr, onTarget = (t: Load) => f(t) as Load): Stmt1 {
  switch (s.kind) {
    case 'iterate': {
      const where = mapSame(s.where, f)
      return where === s.where ? s : { ...s, where }
    }
    case 'if': {
      const cond = f(s.cond)
      return cond === s.cond ? s : { ...s, cond }
    }
    case 'let': {
      const value = f(s.value)
      return value === s.value ? s : { ...s, value }
    }
    case 'rounds':
      return s
    default: {
      const [targets, values] = [mapSame(s.targets, onTarget), mapSame(s.values, f)]
      return targets === s.targets && values === s.values ? s : { ...s, targets, values }
    }
  }
}

export interface StatementContext {
  /** Outermost first. */
  readonly iterations: readonly Iteration[]
  readonly ifs: readonly If1[]
  /** Values of the visible `let`s, expanded until they mention no `let`. */
  readonly lets: ReadonlyMap<string, Expr>
}

const EMPTY_CONTEXT: StatementContext = { iterations: [], ifs: [], lets: new Map() }

/** Calls `visit` on every statement, outer before inner, with its context; `false` skips the nested statements. */
export function walkStmts1(
  body: Body1,
  visit: (s: Stmt1, context: StatementContext) => unknown,
  context: StatementContext = EMPTY_CONTEXT,
): void {
  let current = context
  for (const s of body) {
    if (visit(s, current) === false) continue
    if (s.kind === 'iterate')
      walkStmts1(s.body, visit, { ...current, iterations: [...current.iterations, s] })
    else if (s.kind === 'if') {
      const inner = { ...current, ifs: [...current.ifs, s] }
      walkStmts1(s.then, visit, inner)
      walkStmts1(s.else, visit, inner)
    } else if (s.kind === 'let')
      current = { ...current, lets: new Map(current.lets).set(s.name, substitute(s.value, current.lets)) }
  }
}

/** True if a statement passes the test, or one nested in it. */
export const someStmt1 = (body: Body1, test: (s: Stmt1) => boolean): boolean =>
  body.some((s) => test(s) || bodiesOf1(s).some((b) => someStmt1(b, test)))

/** Rewrites every statement with `visit`, inner before outer; `undefined` = unchanged. */
export const rewriteStmts1 = (body: Body1, visit: (s: Stmt1) => Stmt1 | undefined): Body1 =>
  mapSame(body, (s) => {
    const rebuilt = mapBodies1(s, (b) => rewriteStmts1(b, visit))
    return visit(rebuilt) ?? rebuilt
  })

/** Rewrites every expression with `visit` (bottom-up, `undefined` = unchanged), including targets and `where`s. */
export const rewriteBody1 = (body: Body1, visit: (e: Expr) => Expr | undefined): Body1 =>
  rewriteStmts1(body, (s) => mapExprs1(s, (e) => rewriteExpr(e, visit)))

/** All iterations, outer before inner. */
export const iterationsOf = memoize((body: Body1): readonly Iteration[] => {
  const out: Iteration[] = []
  walkStmts1(body, (s) => {
    if (s.kind === 'iterate') out.push(s)
  })
  return out
})

export function writersIn(body: Body1): readonly (Assign | Reduce1)[] {
  const out: (Assign | Reduce1)[] = []
  walkStmts1(body, (s) => {
    if (s.kind === 'assign' || s.kind === 'reduce') out.push(s)
  })
  return out
}

export const writtenBuffers1 = (body: Body1): ReadonlySet<string> =>
  new Set(writersIn(body).flatMap((s) => s.targets.map((t) => t.buffer)))

/** The loads in the expressions that a statement itself evaluates. */
export function readsOf1(s: Stmt1): readonly Load[] {
  const out: Load[] = []
  for (const e of exprsOf1(s))
    walkExpr(e, (x) => {
      if (x.kind === 'load') out.push(x)
    })
  return out
}

/** Every load, including those in the indices of targets. */
export function readsIn(body: Body1): readonly Load[] {
  const out: Load[] = []
  walkStmts1(body, (s) => void out.push(...readsOf1(s)))
  return out
}

/** Declared reducers (not built-in) that statements use, by name. */
export const declaredMonoids = (body: Body1): ReadonlyMap<string, Monoid> =>
  new Map(
    writersIn(body).flatMap((s) =>
      s.kind === 'reduce' && !isBuiltinReducer(s.reducer.name) ? [[s.reducer.name, s.reducer] as const] : [],
    ),
  )

/** Axes by name, including those that formats replaced. */
export const allAxesOf = ({ reformats, axes }: Kernel1): ReadonlyMap<string, Axis> =>
  new Map([...reformats.flatMap((r) => r.from), ...axes].map((a) => [a.name, a]))

// Constructors of Stage I's statements, the only ones.

export const iteration = (fields: Omit<Iteration, 'kind'>): Iteration => ({ kind: 'iterate', ...fields })

export const define1 = (name: string, value: Expr, span?: Span): Let1 => ({ kind: 'let', name, value, span })

export function when1(
  cond: Expr,
  then: readonly Stmt1[],
  otherwise: readonly Stmt1[] = [],
  span?: Span,
): If1 {
  invariant(cond.dtype === 'bool', 'a condition of another type')
  return { kind: 'if', cond, then, else: otherwise, span }
}

export function assign1(targets: readonly Access[], values: readonly Expr[], span?: Span): Assign {
  invariant(targets.length === values.length, 'a value for each target')
  return { kind: 'assign', targets, values, span }
}

export function reduce1(fields: Omit<Reduce1, 'kind'>): Reduce1 {
  const { reducer, targets, values } = fields
  invariant(
    targets.length === values.length && targets.length === reducer.fields.length,
    'a target and a value for each component',
  )
  return { kind: 'reduce', ...fields }
}

/** The axes that iterations of a kernel visit. */
export function visitedAxes(kernel: Kernel1): readonly string[] {
  const out = new Set<string>()
  walkStmts1(kernel.body, (s) => {
    if (s.kind === 'iterate') for (const x of s.iters) out.add(x.axis)
  })
  return [...out]
}

/** The body of a kernel that visits these axes and computes nothing. */
export const bodyVisiting = (axes: readonly string[]): Kernel1['body'] => [
  iteration({
    name: 'visited',
    iters: axes.map((axis) => ({ name: axis, axis, kind: 'R' })),
    where: [],
    body: [],
  }),
]

/** The variables in the expressions of statements. */
export function namesRead1(body: Body1): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts1(body, (s) => {
    for (const e of exprsOf1(s)) for (const name of freeVars(e)) out.add(name)
  })
  return out
}
