/**
 * Loop distribution (fission) of iterations over the parts of a format. `row [i] { peak [j] …; weight [j] … }`
 * becomes `peak [i, j]` and then `weight [i, j]`, so that each can run over the parts. This is legal because
 * iterations of an S iterator are independent, and R iterators expose no partial results
 * (`analysis/dependence/iterator-kinds.ts`). Each piece recomputes the `let`s and conditions around it, so the buffers that they
 * read must be unchanged.
 */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import type { Iter, Iteration, Let1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  iteration,
  namesRead1,
  someStmt1,
  when1,
  writtenBuffers1,
} from '../../../ir/coordinates/stage1-tree.ts'
import { type Expr, not } from '../../../ir/expressions/expr.ts'
import { buffersRead, freeVars, substitute } from '../../../ir/expressions/expr-tree.ts'

/** Returns whether the statement is or contains an iteration over one of the axes. */
export const enters = (s: Stmt1, leaving: ReadonlySet<string>): boolean =>
  someStmt1([s], (x) => x.kind === 'iterate' && x.iters.some((it) => leaving.has(it.axis)))

/** Returns whether iterations inside of this one run over the axes. */
export const isNest = (it: Iteration, leaving: ReadonlySet<string>): boolean =>
  it.body.some((s) => enters(s, leaving))

/**
 * A `let`, or a condition of an `if` or a `where`, around a piece; `time` is the number of the statement that
 * computed it.
 */
interface Shell {
  readonly time: number
  readonly let?: Let1
  readonly cond?: Expr
}

interface StatementScope {
  readonly name: string
  readonly iters: readonly Iter[]
  readonly where: readonly Shell[]
  readonly shells: readonly Shell[]
}

interface State {
  readonly leaving: ReadonlySet<string>
  readonly text: string
  readonly out: Iteration[]
  readonly written: Map<string, number[]>
  readonly nest: string
  time: number
}

/**
 * Returns iterations that together are equivalent to the nest; none contains another iteration over `leaving`. Names
 * may repeat. Throws `schedule/format-distribute`.
 */
export function distribute(
  nest: Iteration,
  leaving: ReadonlySet<string>,
  text: string,
): readonly Iteration[] {
  const state: State = { leaving, text, out: [], written: new Map(), nest: nest.name, time: 0 }
  const where = nest.where.map((cond): Shell => ({ time: 0, cond }))
  pieces(nest.body, { name: nest.name, iters: nest.iters, where, shells: [] }, state)
  return state.out
}

function pieces(body: readonly Stmt1[], place: StatementScope, state: State): void {
  let { shells } = place
  let group: { readonly stmt: Stmt1; readonly time: number }[] = []
  const flush = (): void => {
    if (group.some((g) => g.stmt.kind !== 'let')) {
      const stmts = group.map((g) => g.stmt)
      emit(stmts, place.name, { ...place, shells }, group[0]!.time, state)
    }
    shells = [
      ...shells,
      ...group.flatMap((g) => (g.stmt.kind === 'let' ? [{ time: g.time, let: g.stmt }] : [])),
    ]
    group = []
  }
  for (const s of body) {
    const time = ++state.time
    if (!enters(s, state.leaving)) {
      group.push({ stmt: s, time })
      note([s], time, state)
      continue
    }
    flush()
    if (s.kind === 'if') {
      pieces(s.then, { ...place, shells: [...shells, { time, cond: s.cond }] }, state)
      pieces(s.else, { ...place, shells: [...shells, { time, cond: not(s.cond) }] }, state)
    } else if (s.kind === 'iterate') inner(s, { ...place, shells }, time, state)
  }
  flush()
}

function inner(s: Iteration, place: StatementScope, time: number, state: State): void {
  const lets = letValues(place.shells)
  const conditions = namesRead1([{ ...s, body: [] }])
  for (const shell of place.shells)
    if (shell.let && conditions.has(shell.let.name))
      checkUnchanged(lets.get(shell.let.name)!, shell, time, state)
  const next: StatementScope = {
    name: s.name,
    iters: [...place.iters, ...s.iters],
    where: [...place.where, ...s.where.map((w): Shell => ({ time, cond: substitute(w, lets) }))],
    shells: place.shells,
  }
  if (isNest(s, state.leaving)) {
    pieces(s.body, next, state)
    return
  }
  note(s.body, time, state)
  // Values from before the loops of the iteration are now recomputed in each of its steps.
  emit(s.body, s.name, next, time + 1, state)
}

function note(body: readonly Stmt1[], time: number, state: State): void {
  for (const b of writtenBuffers1(body)) state.written.set(b, [...(state.written.get(b) ?? []), time])
}

/** Emits one piece: the statements under the enclosing conditions and the enclosing lets that they use. */
function emit(
  stmts: readonly Stmt1[],
  name: string,
  place: StatementScope,
  before: number,
  state: State,
): void {
  const used = new Set(namesRead1(stmts))
  let body = stmts
  for (const shell of [...place.shells].reverse()) {
    if (shell.let && !used.has(shell.let.name)) continue
    const read = shell.let ? shell.let.value : shell.cond!
    checkUnchanged(read, shell, before, state)
    for (const v of freeVars(read)) used.add(v)
    body = shell.let ? [shell.let, ...body] : [when1(shell.cond!, body)]
  }
  for (const w of place.where) checkUnchanged(w.cond!, w, before, state)
  state.out.push(iteration({ name, iters: place.iters, where: place.where.map((w) => w.cond!), body }))
}

function checkUnchanged(read: Expr, shell: Shell, before: number, state: State): void {
  for (const [buffer, times] of state.written) {
    if (!times.some((t) => t > shell.time && t < before)) continue
    if (!buffersRead(read).has(buffer)) continue
    const what = shell.let ? `let ${shell.let.name}` : 'a condition'
    failWith(
      'schedule/format-distribute',
      `${state.text} separates the iterations inside ${state.nest}, and ${what} reads ${buffer}, which is overwritten before the last use`,
      {
        ...(read.span && { span: read.span }),
        expected: 'inner iterations that share nothing but buffers indexed by the outer iterators',
        hint: `keep the value in a buffer over ${state.nest}'s axes, written by a separate iteration`,
      },
    )
  }
}

function letValues(shells: readonly Shell[]): ReadonlyMap<string, Expr> {
  const out = new Map<string, Expr>()
  for (const s of shells) if (s.let) out.set(s.let.name, substitute(s.let.value, out))
  return out
}
