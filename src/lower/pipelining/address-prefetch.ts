/**
 * Addresses of pipelined copies in registers. Copies may load their addresses from memory, for example the numbers of gathered rows.
 * These are loaded one iteration before the copies start (software pipelining of indirect loads). Loop-invariant addresses are loaded
 * once, before the loop. In pipelines across outer iterations, quotients and loads that depend only on the outer iteration are computed
 * once per outer iteration (loop-invariant code motion).
 */

import type { Facts } from '../../analysis/integers/facts.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { conjuncts, type Expr, int, type Load, load, not, variable } from '../../ir/expressions/expr.ts'
import {
  children,
  evaluationGuard,
  freeVars,
  mentions,
  mentionsSome,
  readsMemory,
  rewriteExpr,
  someExpr,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import { allocatedNames, boundVarsOf, renameBound, substituteStmts } from '../../ir/statements/bindings.ts'
import type { Buffer, For } from '../../ir/statements/loops.ts'
import { local, store, when, whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'

/** Upper bound on the addresses of one load expression, and on the values of an outer iteration, that a thread keeps in registers. */
const MOST = 32
const MOST_INVARIANTS = 16

/** Copies that read values from `registers`. */
export interface Hoisted {
  readonly copies: Body
  readonly registers: readonly Buffer[]
  /** Returns statements that compute the registers if `within` holds, after replacing variables by the expressions in `at`. */
  readonly fill: (within?: Expr, at?: ReadonlyMap<string, Expr>) => Body
}

interface Address {
  readonly load: Load
  /** The loops of the copy on which the address depends. */
  readonly loops: readonly For[]
  /** The address is in range, and therefore loaded, if all conditions of at least one list hold. */
  readonly cases: readonly (readonly Expr[])[]
}

/** The place of an expression that a copy evaluates: its enclosing loops, and the conditions that hold at this point. */
interface Place {
  readonly path: readonly For[]
  readonly conditions: readonly Expr[]
}

interface Use extends Place {
  readonly load: Load
}

/**
 * Prefetches the addresses that change with the iteration (`moving`), for copies that run under the conditions `known`. `stable` returns
 * true for buffers that are not written meanwhile.
 */
export const addressesAhead = (
  copies: Body,
  known: readonly Expr[],
  moving: (a: Load) => boolean,
  stable: (buffer: string) => boolean,
  names: Names,
): Hoisted => inRegisters(copies, known, (u) => moving(u.load), [], stable, names)

/**
 * Hoists addresses out of `loop`: those that are invariant in `loop`, but change within a copy or between iterations of the outer loop
 * `over`.
 */
export function addressesOnce(
  copies: Body,
  loop: For,
  stable: (buffer: string) => boolean,
  names: Names,
  over?: For,
): Hoisted {
  const fixed = ({ load, path }: Use): boolean =>
    !mentions(load, loop.var) &&
    (path.some((l) => mentions(load, l.var)) || (over !== undefined && mentions(load, over.var)))
  return inRegisters(copies, [], fixed, [loop], stable, names)
}

interface Kept extends Address {
  readonly key: string
  readonly registers: Buffer
}

/**
 * Replaces the addresses that `isSelected` accepts by registers. `around`: enclosing loops in which these addresses are invariant.
 */
function inRegisters(
  copies: Body,
  known: readonly Expr[],
  isSelected: (u: Use) => boolean,
  around: readonly For[],
  stable: (buffer: string) => boolean,
  names: Names,
): Hoisted {
  const uses = new Map<string, Use[]>()
  visitExprs(copies, known, (load, place, depth) => {
    if (load.kind === 'load' && depth === 1 && isSelected({ ...place, load })) uses.set(keyOf(load), [])
  })
  visitExprs(copies, known, (load, { path, conditions }) => {
    if (load.kind === 'load') uses.get(keyOf(load))?.push({ load, conditions, path: [...around, ...path] })
  })
  const kept = [...uses].flatMap(([key, list]): Kept[] => {
    const a = addressOf(list, stable)
    return a ? [{ key, ...a, registers: registersFor(a, names) }] : []
  })
  const by = new Map(kept.map((k) => [k.key, k]))
  const over = new Set(kept.flatMap((k) => k.loops.map((l) => l.var)))
  const replaced = rewriteStmts(copies, {
    expr: (e) => {
      const k = e.kind === 'load' ? by.get(keyOf(e)) : undefined
      return k && load(k.registers.name, placeIn(k.loops), e.dtype)
    },
    stmt: (s) => (s.kind === 'for' && over.has(s.var) ? unrolled(s) : undefined),
  })
  return {
    copies: replaced,
    registers: kept.map((k) => k.registers),
    fill: (within, at = new Map()) =>
      kept.flatMap((k) => {
        const body = substituteStmts(filling(k, names), at)
        return within ? [when(within, body)] : body
      }),
  }
}

/** Returns the loop nest that loads each address into its register. */
function filling(k: Kept, names: Names): Body {
  const registers = store(k.registers.name, placeIn(k.loops), k.load)
  const nest = k.loops.reduceRight<Body>(
    (inner, l) => [unrolled({ ...l, guards: [], body: inner })],
    k.cases.flatMap((conditions) => whenAll(conditions, [registers])),
  )
  return renameBound(nest, new Map(k.loops.map((l) => [l.var, names.fresh(l.var)])))
}

const placeIn = (loops: readonly For[]): readonly Expr[] =>
  loops.length > 0 ? loops.map((l) => variable(l.var)) : [int(0)]

const unrolled = (l: For): For =>
  stmt({ ...l, mode: l.mode.kind === 'serial' ? { kind: 'unroll', factor: null } : l.mode })

const registersFor = (a: Address, names: Names): Buffer =>
  local(
    names.fresh(`${a.load.buffer}_next`),
    a.load.dtype,
    a.loops.map((l) => l.extent),
  )

/**
 * Called for every expression of the copies in evaluation order; `false` skips its operands. `depth`: 2 in a stored value, 1 in the
 * address of an outermost load of a stored value, otherwise 0.
 */
type Visit = (e: Expr, place: Place, depth: number) => unknown

function visitExprs(copies: Body, known: readonly Expr[], visit: Visit, path: readonly For[] = []): void {
  /** Visits each condition under the conditions before it, and returns all conditions. */
  const visitTerms = (terms: readonly Expr[], inner: readonly For[]): readonly Expr[] => {
    for (const [k, c] of terms.entries())
      visitExpr(c, { path: inner, conditions: [...known, ...terms.slice(0, k)] }, 0, visit)
    return [...known, ...terms]
  }
  for (const s of copies)
    if (s.kind === 'for') {
      visitExpr(s.extent, { path, conditions: known }, 0, visit)
      const inner = [...path, s]
      visitExprs(s.body, visitTerms(s.guards, inner), visit, inner)
    } else if (s.kind === 'if') {
      visitExprs(s.then, visitTerms(conjuncts(s.cond), path), visit, path)
      visitExprs(s.else, [...known, not(s.cond)], visit, path)
    } else {
      const depth = s.kind === 'store' ? 2 : 0
      for (const e of exprsOf(s)) visitExpr(e, { path, conditions: known }, depth, visit)
    }
}

function visitExpr(e: Expr, place: Place, depth: number, visit: Visit): void {
  if (visit(e, place, depth) === false) return
  const inner = e.kind === 'load' ? Math.max(0, depth - 1) : depth
  for (const [k, x] of children(e).entries()) {
    const where = evaluationGuard(e, k)
    visitExpr(x, where ? { ...place, conditions: [...place.conditions, where] } : place, inner, visit)
  }
}

/** Returns one address that serves all uses, or `undefined` if the uses differ or need more than `MOST` registers. */
function addressOf(uses: readonly Use[], stable: (buffer: string) => boolean): Address | undefined {
  const addresses = uses.map((u) => address(u, stable))
  const [first] = addresses
  if (!first) return undefined
  const cases = new Map<string, readonly Expr[]>()
  for (const a of addresses) {
    if (a?.loops.length !== first.loops.length || a.loops.some((l, k) => !sameLoop(l, first.loops[k]!)))
      return undefined
    cases.set([...new Set(a.conditions.map(keyOf))].sort().join(), a.conditions)
  }
  const holds = (a: readonly Expr[], b: readonly Expr[]): boolean =>
    a.every((c) => b.some((d) => keyOf(c) === keyOf(d)))
  const all = [...cases.values()]
  return {
    load: first.load,
    loops: first.loops,
    cases: all.filter((b) => !all.some((a) => a !== b && holds(a, b))),
  }
}

const sameLoop = (a: For, b: For): boolean =>
  a.var === b.var && sameExpr(a.extent, b.extent) && a.mode.kind === b.mode.kind

/**
 * Returns the address of one use with its loops and conditions. `undefined` if a condition depends on other loops and shares a variable
 * with the address, if more than `MOST` registers are needed, or if a buffer that is read may be written meanwhile.
 */
function address(
  { load: a, path, conditions }: Use,
  stable: (buffer: string) => boolean,
): { readonly load: Load; readonly loops: readonly For[]; readonly conditions: readonly Expr[] } | undefined {
  const byThread = [a, ...conditions].some((e) => someExpr(e, (x) => x.kind === 'builtin'))
  const loops = path.filter((l) => mentions(a, l.var) || (byThread && l.cooperative))
  const size = loops.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : Infinity), 1)
  if (size > MOST || loops.some((l) => l.mode.kind === 'instr')) return undefined
  const others = path.filter((l) => !loops.includes(l))
  const addressVars = freeVars(a)
  const kept: Expr[] = []
  for (const c of conditions) {
    const vars = [...freeVars(c)]
    if (!vars.some((v) => others.some((l) => l.var === v))) kept.push(c)
    else if (vars.some((v) => addressVars.has(v))) return undefined
  }
  const moves = (e: Expr): boolean =>
    someExpr(e, (x) => (x.kind === 'load' || x.kind === 'search') && !stable(x.buffer))
  return [a, ...kept].some(moves) ? undefined : { load: a, loops, conditions: kept }
}

/**
 * Hoists values from `copies` in `loop` that depend on the iteration of `over` only. Loads are hoisted only if all iterations evaluate
 * them.
 */
export function pipelineInvariants(copies: Body, loop: For, over: For, known: Facts, names: Names): Hoisted {
  const copyVars = new Set([loop.var, ...boundVarsOf(copies)])
  const memory = allocatedNames(copies)
  const isInvariant = (e: Expr): boolean =>
    isWord(e.dtype) &&
    mentions(e, over.var) &&
    !mentionsSome(e, copyVars) &&
    !someExpr(e, (x) => x.kind === 'builtin' || (x.kind === 'load' && memory.has(x.buffer))) &&
    isCostly(e) &&
    // Values with a known divisor stay in place, because divisibility of registers is unknown.
    known.divisor(e) === 1
  // A condition on threads or on loops of the copy selects the copying thread, but some thread copies always.
  const byThreads = (e: Expr): boolean =>
    !(e.kind === 'unary' && e.op === 'not') &&
    !readsMemory(e) &&
    [...freeVars(e)].every((v) => copyVars.has(v) || THREADS.has(v))
  const isConstant = ({ extent }: For): boolean => extent.kind === 'const' && extent.value > 0
  const hoisted = new Map<string, Expr>()
  visitExprs(copies, [], (e, { path, conditions }) => {
    const isAlways = path.every(isConstant) && conditions.every(byThreads)
    if (!isInvariant(e) || (!isAlways && readsMemory(e))) return true
    hoisted.set(keyOf(e), e)
    return false
  })
  // Values may contain each other, so smaller ones come first.
  const registers = new Map<string, Buffer>()
  const fromRegisters = (e: Expr): Expr | undefined => {
    const register = isCostly(e) ? registers.get(keyOf(e)) : undefined
    return register && load(register.name, [int(0)])
  }
  const depth = (e: Expr): number => 1 + Math.max(0, ...children(e).map(depth))
  const values = [...hoisted.values()].slice(0, MOST_INVARIANTS).toSorted((a, b) => depth(a) - depth(b))
  const fill = values.map((e) => {
    const register = local(names.fresh(`${over.var}_value`), 'i32')
    const value = rewriteExpr(e, fromRegisters)
    registers.set(keyOf(value), register)
    return store(register.name, [int(0)], value)
  })
  return {
    copies: rewriteStmts(copies, { expr: fromRegisters }),
    registers: [...registers.values()],
    fill: () => fill,
  }
}

const THREADS: ReadonlySet<string> = new Set(AXES_OF_BLOCK)

const isCostly = (e: Expr): boolean =>
  e.kind === 'load' ||
  e.kind === 'search' ||
  (e.kind === 'binary' && (e.op === 'div' || e.op === 'mod') && e.b.kind !== 'const')
