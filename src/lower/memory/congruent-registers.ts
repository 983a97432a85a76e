/**
 * Merging of congruent registers (optimistic value numbering; Alpern, Wegman and Zadeck, POPL 1988). Invariant reached: of the registers
 * that are equal before a loop and after each of its iterations, one remains.
 * Reductions of pairs (a maximum and a sum) have such registers: the running maximum is the same for all elements of a row. Device compilers do
 * not detect this, and would rescale each element separately.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int, isOne, load, variable } from '../../ir/expressions/expr.ts'
import { buffersRead, freeVars, perExpr, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { structureText } from '../../ir/expressions/structural-equality.ts'
import { groupBy, memoize } from '../../ir/memoize.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt, While } from '../../ir/statements/loops.ts'
import { define } from '../../ir/statements/statement-builders.ts'
import {
  type Body,
  exprsOf,
  mapExprs,
  piecesOf,
  rewriteStmts,
  someStmt,
  stmtsOf,
  walkStmts,
  withBodies,
} from '../../ir/statements/tree.ts'

export function mergeCongruentRegisters(body: Body, names: Names): Body {
  const scalars = scalarsOf(body)
  const candidates = candidatesIn(body, scalars)
  if (classesBy(candidates, (v) => scalars.get(v)!.dtype).length === 0) return body
  const { repeated, without } = numberingOf(scalars, candidates, names)
  let left = repeated(body)
  while (left.size > 0) {
    const { body: merged, needed } = without(left, body)
    if (needed.size === 0) return withoutUnused(merged)
    left = new Set([...left].filter((v) => !needed.has(v)))
  }
  return body
}

/** Registers of one element, by name. */
const scalarsOf = (body: Body): ReadonlyMap<string, Buffer> =>
  new Map([...allocations(body)].filter(([, b]) => b.scope === 'register' && b.shape.every(isOne)))

/** Registers that may be congruent: a value from memory has a number of its own whenever it is read. */
function candidatesIn(body: Body, scalars: ReadonlyMap<string, Buffer>): ReadonlySet<string> {
  const out = new Set(scalars.keys())
  for (const { buffer, value } of stmtsOf(body, 'store'))
    if ([...buffersRead(value)].some((b) => !scalars.has(b))) out.delete(buffer)
  return out
}

/** Registers that must be kept: named by instructions, read in conditions of `while` loops, or reduced into. */
function namedIn(body: Body): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'instr') for (const p of piecesOf(s)) if (p.kind !== 'value') out.add(p.buffer)
    if (s.kind === 'while') for (const buffer of buffersRead(s.cond)) out.add(buffer)
    if (s.kind === 'reduce') for (const t of s.targets) out.add(t.buffer)
  })
  return out
}

/** A value number. Equal numbers mean equal values; different numbers may also have equal values. */
type Value = number
/** Value number of each live register, in the order of allocation. */
type State = Map<string, Value>
/** At least two registers that are equal whenever an iteration begins, in the order of allocation. */
type Class = readonly string[]
type Loop = For | While

/** `left`: registers to remove. `needed`: registers in `left` whose value no other register holds, so they must stay. */
interface Leaving {
  readonly left: ReadonlySet<string>
  readonly needed: Set<string>
  /** Registers that held a class's value when the iteration began, by value number. */
  readonly before: Map<Value, Before>
}

/**
 * `from`: the register that holds the value. `name`: a let for the value at the beginning of the iteration, if it is read after the
 * register changed; otherwise null.
 */
interface Before {
  readonly from: string
  name: string | null
}

function numberingOf(scalars: ReadonlyMap<string, Buffer>, candidatesOf: ReadonlySet<string>, names: Names) {
  const classesAt = new Map<Loop, readonly Class[]>()
  const numbers = new Map<string, Value>()
  const lets = new Map<string, Value>()
  const constants = new Map<Value, Expr>()
  let next = 0
  const heldIn = (register: string): Expr => load(register, [int(0)], scalars.get(register)!.dtype)
  /** Solves the classes of all loops, and returns the registers that duplicate an earlier register of their class. */
  const repeated = (body: Body): ReadonlySet<string> => {
    walk(body, new Map())
    const named = namedIn(body)
    const later = [...classesAt.values()].flat().flatMap(([, ...others]) => others)
    return new Set(later.filter((v) => !named.has(v)))
  }
  /** Returns the body without these registers, and the registers that are still needed. */
  const without = (
    left: ReadonlySet<string>,
    body: Body,
  ): { readonly body: Body; readonly needed: ReadonlySet<string> } => {
    const leaving: Leaving = { left, needed: new Set(), before: new Map() }
    return { body: walk(body, new Map(), leaving), needed: leaving.needed }
  }
  /** Walks the body. `state` holds the value numbers before the body, and is updated to those after it. */
  const walk = (body: Body, state: State, leaving?: Leaving): Body => {
    const out: Stmt[] = []
    const allocated: string[] = []
    for (const s of body) {
      const t = leaving ? reading(s, state, leaving) : s
      if (s.kind === 'alloc' && scalars.has(s.buffer.name)) {
        allocated.push(s.buffer.name)
        state.set(s.buffer.name, fresh())
        if (!leaving?.left.has(s.buffer.name)) out.push(t)
      } else if (s.kind === 'store' && scalars.has(s.buffer)) {
        state.set(s.buffer, s.unconditional ? fresh() : valueIn(s.value, state))
        if (!leaving?.left.has(s.buffer)) out.push(t)
      } else if (s.kind === 'if') {
        const cond = valueIn(s.cond, state)
        const ends = [new Map(state), new Map(state)] as const
        const bodies = [walk(s.then, ends[0], leaving), walk(s.else, ends[1], leaving)]
        for (const v of state.keys()) {
          const [a, b] = ends.map((end) => end.get(v)!)
          state.set(v, a === b ? a! : numberOf(`if ${cond} ${a} ${b}`))
        }
        out.push(withBodies(t, bodies))
      } else if (s.kind === 'for' || s.kind === 'while') {
        out.push(withBodies(t, [loop(s, state, leaving)]))
      } else {
        if (s.kind === 'let') lets.set(s.name, s.lane ? fresh() : valueIn(s.value, state))
        else for (const buffer of writesOf([s])) if (state.has(buffer)) state.set(buffer, fresh())
        out.push(t)
      }
    }
    for (const v of allocated) state.delete(v)
    return out
  }
  const loop = (s: Loop, state: State, leaving?: Leaving): Body => {
    const writes = writtenIn(s)
    const written = [...state.keys()].filter((v) => writes.has(v))
    if (!leaving) solve(s, written, state)
    const classes = classesAt.get(s)!
    let body = s.body
    if (leaving) {
      const inner = begin(written, classes, state)
      const befores = classes.map((c): Before => ({ from: c.find((v) => !leaving.left.has(v))!, name: null }))
      for (const before of befores) leaving.before.set(inner.get(before.from)!, before)
      const walked = walk(s.body, inner, leaving)
      const lets = befores.flatMap(({ from, name }) => (name === null ? [] : [define(name, heldIn(from))]))
      body = [...lets, ...walked]
    }
    for (const [v, value] of begin(written, classes, state)) state.set(v, value)
    return body
  }
  /** Returns the state at the beginning of an iteration, or after the last iteration. */
  const begin = (written: readonly string[], classes: readonly Class[], state: State): State => {
    const held = new Map(state)
    for (const v of written) held.set(v, fresh())
    for (const c of classes) for (const v of c) held.set(v, held.get(c[0]!)!)
    return held
  }
  /**
   * Partition refinement: begins with classes of registers that are equal before the loop, and splits them until an iteration preserves
   * the classes.
   */
  const solve = (s: Loop, written: readonly string[], state: State): void => {
    const candidates = written.filter((v) => candidatesOf.has(v))
    let classes = classesBy(candidates, (v) => `${scalars.get(v)!.dtype} ${state.get(v)}`)
    for (;;) {
      classesAt.set(s, classes)
      const inner = begin(written, classes, state)
      walk(s.body, inner)
      const parted = classes.flatMap((c) => classesBy(c, (v) => inner.get(v)))
      if (parted.length === classes.length && parted.every((c, k) => c.length === classes[k]!.length)) return
      classes = parted
    }
  }
  /** Replaces reads of removed registers by other registers or constants of the same value. */
  const reading = (s: Stmt, state: State, { left, needed, before }: Leaving): Stmt =>
    mapExprs(s, (whole) =>
      rewriteExpr(whole, (e) => {
        if (e.kind !== 'load' || !left.has(e.buffer)) return undefined
        const value = state.get(e.buffer)
        const constant = value === undefined ? undefined : constants.get(value)
        if (constant) return constant
        for (const [v, held] of state) if (held === value && !left.has(v)) return heldIn(v)
        const old = value === undefined ? undefined : before.get(value)
        if (old) return variable((old.name ??= names.fresh(`${old.from}_before`)), e.dtype)
        needed.add(e.buffer)
        return undefined
      }),
    )
  const valueIn = (whole: Expr, state: State): Value => {
    // Memory may hold another value whenever it is read.
    if ([...buffersRead(whole)].some((b) => !state.has(b))) return fresh()
    const valueIn = perExpr<Value>((e, recurse) => {
      if (e.kind === 'var') return lets.get(e.name) ?? numberOf(e.name)
      if (e.kind === 'load') return state.get(e.buffer) ?? fresh()
      if (e.kind === 'search') return fresh()
      const value = numberOf(structureText(e, (x) => String(recurse(x))))
      if (e.kind === 'const') constants.set(value, e)
      return value
    })
    return valueIn(whole)
  }
  const fresh = (): Value => next++
  const numberOf = (key: string): Value => {
    let number = numbers.get(key)
    if (number === undefined) {
      number = fresh()
      numbers.set(key, number)
    }
    return number
  }
  return { repeated, without }
}

const writtenIn = memoize((s: Loop) => writesOf(s.body))

/** Groups registers by key; groups of one register are dropped. */
const classesBy = (registers: Iterable<string>, keyOf: (v: string) => unknown): readonly Class[] =>
  [...groupBy(registers, keyOf).values()].filter((c) => c.length > 1)

function withoutUnused(body: Body): Body {
  const used = new Set<string>()
  walkStmts(body, (s) => {
    for (const e of exprsOf(s)) for (const v of freeVars(e)) used.add(v)
  })
  const isUnused = (s: Stmt): boolean => s.kind === 'let' && !s.lane && !used.has(s.name)
  if (!someStmt(body, isUnused)) return body
  return withoutUnused(rewriteStmts(body, { stmt: (s) => (isUnused(s) ? [] : undefined) }))
}
